"""What a step that was run again with changes came to, as findings."""
