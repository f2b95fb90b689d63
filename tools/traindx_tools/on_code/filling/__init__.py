"""The reader of text that fills `program/`: from the follower's values and trace to entities and moments."""
