"""Files of source code and of configuration: which there are, what is in them, which one an import means."""
