"""traindx: finds the root cause of a failed training run and changes nothing before a person has agreed."""
