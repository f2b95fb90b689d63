"""What makes a finding's change certain, and the change itself: one module for each family of rules.

Every producer takes what a rule has proved and gives patches, or none where place or change are not certain.
"""
