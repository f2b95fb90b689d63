"""Experiments: one change, one control, one verdict.

`change.py` is what is changed, `trace.py` what a run showed, `place.py` where runs happen. `interventions/` is the
table of what can be changed and how, `isolating/` searches. `outcome.py` is what is measured, `design.py` what is run
next and what it came to (pure, with `on_events.py`, `on_numbers.py`, `compare.py`); `experiment.py` makes, keeps and
notes the runs. Standard library and numpy; frameworks are touched in the run's own process alone.
"""
