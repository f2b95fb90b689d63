"""Isolation: of everything in which a good and a bad run differ, the smallest part that makes the symptom come.

`outcomes.py` says what one run showed, `oracle.py` asks runs and remembers, `minimise.py`, `every.py` and
`bisection.py` search, `controls.py` judges whether there is something to search, `isolate.py` joins them. `spaces/` is
what can differ (configuration, environment, files, rows, tensors, commits); `parting/` is for two runs that should have
been equal.
"""
