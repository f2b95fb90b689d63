"""What a study of planted values may find."""
