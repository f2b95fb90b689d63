"""The instruments of a live JAX process, one module each."""
