"""The variables of a running program, of any framework: what they hold and what becomes of it."""
