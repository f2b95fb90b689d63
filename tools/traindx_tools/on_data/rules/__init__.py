"""One file an observation: what data files hold that they should not."""
