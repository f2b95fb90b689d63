"""Pauses: the time between records as a series of its own, and the records before which a run stood still.

A log's clock counts whole seconds, and most records are equally far apart, so that nothing scatters: a pause is told by
its ratio to the usual distance, and by the room between it and the longest distance that is none. Where there is no
such room, distances vary by nature. Evaluations and checkpoints pause a run too, at even distances in records or time,
at each epoch, or beside lines of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats, Ints, Run, Series

FEWEST, RECORDS = 3, 60
"""Pauses, and records of the series."""
SECONDS, TIMES, ROOM = 10.0, 10.0, 3.0
"""What a pause takes at least; times the usual distance; times the longest distance that is no pause."""
MOST = 0.1
"""Share of the records before which a run may pause."""
EVEN, MOSTLY = 0.1, 0.8
"""By how much even distances differ; the share of pauses that decides what they are."""
OWN = frozenset({"checkpoint", "epoch"})
"""Kinds of notes that lines of their own are."""


@dataclass(frozen=True, eq=False)
class Pauses:
    """`at`: the records of `series` before which it pauses, ascending. `seconds`: of each. `usual`: of the others.

    `own`: how many of them have an evaluation, a checkpoint or the end of an epoch before them.
    """

    series: Series
    at: Ints
    seconds: Floats
    usual: float
    own: int

    @property
    def lost(self) -> float:
        """Share of the whole time."""
        return float(self.seconds.sum() / max(self.series.time[-1] - self.series.time[0], 1e-9))

    @cached_property
    def regular(self) -> bool:
        """Whether they come evenly in records or running time, or most beside what has a line of its own."""
        running = self.series.time[self.at] - np.cumsum(self.seconds)
        places = (self.at.astype(np.float64), np.asarray(running, dtype=np.float64))
        return self.own >= MOSTLY * len(self.at) or any(map(even, places))


def between_records(s: Series) -> Floats | None:
    """Seconds since the record before, shape (n,), the first like the second; None where times are not known."""
    if s.thinned or len(s) < 3 or not np.isfinite(s.time).all():
        return None
    passed = np.diff(np.clip(s.time, -1e15, 1e15), prepend=np.nan)
    passed[0] = passed[1]
    return passed


def pauses_of(run: Run, s: Series) -> Pauses | None:
    """The pauses of a run by the clock of one of its series; None where it has none, or varies by nature."""
    passed = between_records(s)
    if passed is None or len(passed) < RECORDS or (passed < 0).any():
        return None
    usual = float(np.median(passed))
    ranked = np.sort(passed)[::-1][: int(MOST * len(passed)) + 1]
    least = max(SECONDS, TIMES * max(usual, float(ranked[-1])))
    many = int(np.count_nonzero(ranked >= least))
    if usual < 0 or not FEWEST <= many < len(ranked) or ranked[many - 1] < ROOM * max(float(ranked[many]), usual):
        return None
    at = np.flatnonzero(passed >= ranked[many - 1])
    at = at[(at > 1) & ~_beside(s, at, _lines_of(run, s, frozenset({"resume"})))]
    if len(at) < FEWEST:
        return None
    own = _beside(s, at, _lines_of(run, s, OWN) + _evaluations(run, s))
    own |= np.isfinite(s.epoch[at]) & (np.floor(s.epoch[at]) != np.floor(s.epoch[at - 1]))
    return Pauses(s, at, passed[at], usual, int(np.count_nonzero(own)))


def _lines_of(run: Run, s: Series, kinds: frozenset[str]) -> list[int]:
    return [n.line for n in run.notes if n.kind in kinds and n.source == s.source]


def _evaluations(run: Run, s: Series) -> list[int]:
    others = [o.line for o in run.series if o.source == s.source and o.group != s.group and len(o)]
    return np.concatenate(others).tolist() if others else []


def _beside(s: Series, at: Ints, lines: list[int]) -> NDArray[np.bool_]:
    """For each record whether one of the lines stands behind the record before it, or within its own."""
    ordered = np.sort(np.array(lines, dtype=np.int64))
    after, until = s.line[at - 1], s.line[at]
    return np.searchsorted(ordered, until, side="right") > np.searchsorted(ordered, after, side="left")


def even(places: Floats) -> bool:
    """Whether most stand as far from the one before as usual, or twice or three times as far."""
    apart = np.diff(places)
    usual = float(np.median(apart))
    if usual <= 0:
        return False
    times = np.maximum(np.round(apart / usual), 1.0)
    near = (np.abs(apart - times * usual) <= np.maximum(EVEN * usual, 1.0)) & (times <= 3)
    return bool(near.mean() >= MOSTLY)
