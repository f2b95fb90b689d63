"""What can differ between a good and a bad run: each space lists the differences and prepares a run with some of them.
"""
