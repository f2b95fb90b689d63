"""What a training script prints under which name, for the readers of its logs."""
