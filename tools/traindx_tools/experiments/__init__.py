"""Experiments: one change, one control, one verdict.

`change.py` is what is changed, `trace.py` what a run showed, `place.py` where runs happen. `interventions/` is the
table of what can be changed and how. Standard library and numpy; frameworks are touched in the run's own process alone.
"""
