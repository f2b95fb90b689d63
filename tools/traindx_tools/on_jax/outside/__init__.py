"""What traced code takes from outside of its arguments: names of its surroundings, and what is reached from them."""
