"""The settings of a run as its process really read them: what was written, what any code names, what became of values."""
