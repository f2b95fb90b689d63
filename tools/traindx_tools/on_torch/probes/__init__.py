"""One instrument a file: each watches its own moments of a training step."""
