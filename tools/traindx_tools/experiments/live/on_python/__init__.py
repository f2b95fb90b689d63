"""Changes that need no framework: seeds of Python and NumPy."""
