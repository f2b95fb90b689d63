"""Whether the parameters of a training still move, and what in the program stopped them."""
