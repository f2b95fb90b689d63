"""The settings of a run as its process really read them: what was written, what code names, what values became."""
