"""One rule a module: its page, its record and the function that judges what an instrument measured."""
