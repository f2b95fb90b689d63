"""Readers of checkpoints, one file a format; nothing that a file holds is executed."""
