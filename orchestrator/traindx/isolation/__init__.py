"""Isolation with real runs, each in a protected copy: what `traindx isolate` does, as functions.

`search.py` has one function a kind of difference, `place.py` runs, `kept.py` remembers outcomes on disk, `words.py`
says the answer. The algorithms are in `traindx_tools.experiments.isolating`.
"""

from traindx.isolation.equal import EqualAnswer, isolate_runs
from traindx.isolation.request import Request
from traindx.isolation.search import Answer, isolate_commits, isolate_config, isolate_data, isolate_weights

__all__ = ["Answer", "EqualAnswer", "Request", "isolate_commits", "isolate_config", "isolate_data", "isolate_runs",
           "isolate_weights"]
