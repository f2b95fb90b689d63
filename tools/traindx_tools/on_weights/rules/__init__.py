"""One file an observation of weights (W101...): each takes a `Seen` and tells what is wrong with which tensor."""
