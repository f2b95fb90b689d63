"""A kept call of a jitted step, run again from its jaxpr with one change at a time."""
