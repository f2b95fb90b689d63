"""One file a rule over the records of all ranks (R1xx)."""
