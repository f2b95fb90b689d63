"""Planted values: single values of a data file are changed in a copy, and the rows of batches that change are seen.

Where a value of the file arrives says what reading the code does not: whether the input of a row holds its own target
(a window that looks ahead, a feature that is made of the label), and whether input and label of a row of the file reach
the model together. Nothing of it depends on how the program prepares its data. `tables.py` reads and changes files,
`choosing.py` says which values, `judging.py` compares two runs, `study.py` makes the runs.
"""
