"""A program that goes on from a file, played in the order of its text: what was taken out, and who reads it."""
