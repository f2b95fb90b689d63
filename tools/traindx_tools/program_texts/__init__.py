"""What is known of a program as text for people: of one that was read, and of one that ran."""
