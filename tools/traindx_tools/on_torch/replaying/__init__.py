"""A kept step of a torch program, run again in its process with one change at a time."""
