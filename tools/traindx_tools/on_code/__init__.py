"""The follower: training code read as text, never imported or run, as values and what happens in which order."""
