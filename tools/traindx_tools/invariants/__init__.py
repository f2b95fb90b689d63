"""Checks that ask `program/` only: one file, one thing that must hold in every training program."""
