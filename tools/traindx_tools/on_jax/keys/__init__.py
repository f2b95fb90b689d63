"""Keys of random numbers: which key of a jaxpr, a loop or a whole run is used more than once."""
