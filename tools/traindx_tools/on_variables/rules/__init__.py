"""One file an observation of variables (V101...): each takes what was seen and tells what is wrong."""
