"""An audit as a person, a CI job or an editor gets it: narrowed, exceptions heeded, and written down in a format."""
