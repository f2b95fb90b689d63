"""Notebooks: their cells as code, IPython's own forms rewritten, and what their cells printed."""
