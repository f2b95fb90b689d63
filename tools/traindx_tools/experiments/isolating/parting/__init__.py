"""Two runs that should have been equal: the first step, batch, row and tensor where they part, and what removes it."""
