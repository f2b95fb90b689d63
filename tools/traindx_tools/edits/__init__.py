"""Edits of a source that mend a fault: a few generic ones, and a table of which remedy is which of them.

Edits stand on positions of the source (the standard library's `ast`), so that the base install makes them, and what
is not edited keeps its comments and its form. Where none is certain, the fix is told in words with path and line.
"""
