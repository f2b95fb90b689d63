"""A kept step of a torch program on disk, and put into the program again when it was started anew."""
