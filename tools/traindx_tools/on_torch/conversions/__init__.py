"""Known ways in which a stored tensor stands otherwise than the code reads it, tried on the first batch."""
