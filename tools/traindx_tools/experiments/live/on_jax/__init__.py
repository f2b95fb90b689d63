"""Changes in a JAX program: what can be done from outside of compiled functions, or while they are traced."""
