"""What the events of a log say, one rule a file."""
