"""What every instrument inside a running process shares: how it gets in, where it writes, how its files are read."""
