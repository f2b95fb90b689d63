"""A step that is kept so that it can be run again: what the program did, and the state in which it did it."""
