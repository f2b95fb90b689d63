"""What the records of many ranks say together: read after the run, never through a collective of our own."""
