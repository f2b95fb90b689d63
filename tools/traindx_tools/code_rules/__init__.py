"""Rules that ask the follower itself and not yet the model of the program: one file each."""
