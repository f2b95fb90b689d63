"""What an experiment came to, as findings: one rule a verdict, each with its page."""
