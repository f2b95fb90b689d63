"""Where the first value that is not finite comes from: a jaxpr is evaluated equation by equation."""
