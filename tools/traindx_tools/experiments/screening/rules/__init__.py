"""What a screen came to, as findings."""
