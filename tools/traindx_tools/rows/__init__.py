"""What reached a model, row by row: independent of the framework that runs it, numpy alone."""
