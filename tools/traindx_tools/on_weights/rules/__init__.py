"""One file an observation of weights (W101...): each takes a `Seen` and tells what is wrong with which tensor.

Some take what one file does not tell: `check_files` the files of a run, `check_code` a file and programs that load it,
`check_run` the files and the programs, `check_beside` all files of a run, texts and lists as well.
"""
