"""One step that went wrong, run again with one change at a time: what is changed and measured, what it comes to."""
