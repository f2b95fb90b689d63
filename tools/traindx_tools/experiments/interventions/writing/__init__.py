"""Edits of texts that keep everything else as it was written: command lines, configuration files, sources, data files.

Each takes a text or bytes and returns the new one; nothing is written here.
"""
