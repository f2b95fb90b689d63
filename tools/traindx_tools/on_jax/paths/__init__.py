"""What depends on what in a jaxpr: gradients, dead computations, one sample on another."""
