"""Counters under a name that also stands for a duration: "time/batch: 3" counts batches, "time/batch: 0.31" times one.

The values tell: a count is whole and stands one higher, or many samples higher, at each record; the epoch of a record
is the epoch that the line itself states. No duration does either. Where a writer counts under such names, what it
calls "time/train" beside them is the time since the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.readers.names import words
from traindx_tools.on_logs.run import Run, Series

FEWEST, EVEN = 3, 0.8
_DURATIONS = frozenset({"step_time", "epoch_time"})


def without_time_counters(run: Run) -> Run:
    """The run with counters called "count/<what>", and the time since the start "elapsed"."""
    told = [_counts(s) for s in run.series]
    sources = {s.source for s, count in zip(run.series, told, strict=True) if count}
    if not sources:
        return run
    return replace(run, series=tuple(
        replace(s, name=f"count/{'_'.join(words(s.original)[-3:])}") if count else
        replace(s, name="elapsed") if s.source in sources and _since_start(s) else s
        for s, count in zip(run.series, told, strict=True)))


def _counts(s: Series) -> bool:
    if s.name not in _DURATIONS or "/" not in s.original or len(s) < FEWEST:
        return False
    v = s.values
    if not np.isfinite(v).all() or (v != np.round(v)).any() or (v < 0).any():
        return False
    return _climbs_evenly(v) or _is_offset(v, s.epoch)


def _climbs_evenly(values: np.ndarray) -> bool:
    """Whether each value lies above the one before, four times of five by as much: a last batch may be smaller."""
    distances = np.diff(values)
    return bool((distances > 0).all() and (distances == np.median(distances)).mean() >= EVEN)


def _is_offset(values: np.ndarray, counter: np.ndarray) -> bool:
    """Whether the values are a counter of the line itself, from 0 or from 1."""
    return bool(np.isfinite(counter).all() and np.isin(counter - values, (0.0, 1.0)).all()
                and len(np.unique(counter - values)) == 1)


def _since_start(s: Series) -> bool:
    return s.name in _DURATIONS and "/" in s.original and len(s) >= FEWEST and _never_falls(s.values)


def _never_falls(values: Sequence[float] | np.ndarray) -> bool:
    return bool((np.diff(np.asarray(values)) >= 0).all())
