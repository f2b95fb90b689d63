"""Whether what a function computes with is the trained state, or a copy from before the training moved it."""
