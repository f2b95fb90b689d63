"""What isolations found, as findings that a diagnosis can cite."""
