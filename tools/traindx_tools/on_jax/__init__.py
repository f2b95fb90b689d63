"""Instruments over jaxprs and inside a live JAX process. Nothing here is imported before the program imports jax."""
