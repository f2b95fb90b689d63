"""Changes in a torch program."""
