"""Where a run goes wrong for good, and what in the log itself goes ahead of it.

A trouble is a break (`anomalies/breaks.py`) of a series towards worse, or the first value of loss or gradient norm that
is not finite. Ahead of it: breaks of the other series within `LEAD` records before, those that a program sets (a
learning rate, a scale, a size) up to the same record. Beside it: lines that stand there and hardly anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.anomalies.breaks import CLEAR, Break, breaks
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.curves.l404_throughput_decay import SPEEDS
from traindx_tools.on_logs.curves.outcomes import is_adversarial, is_reinforcement, main_loss
from traindx_tools.on_logs.curves.shapes import LARGEST, noise
from traindx_tools.on_logs.events.line_beside import Beside, lines_beside
from traindx_tools.on_logs.run import Run, Series

RAMP = 40
"""Records before it over which a series that ends in NaN may have been rising."""
LEAD = 10
"""Records before a trouble within which a break of another series may have to do with it."""
MOST_SERIES = 60
TIMES = ("step_time", "data_time")
SET = ("learning_rate", "loss_scale", "batch_size", "weight_decay", "momentum", "seq", "temperature", "beta", "stage")
"""Beginnings of canonical names of what a program sets: it moves before what it moves."""
_PLACES = ("epoch", "step", "elapsed", "count", "progress", "time/", "memory")
"""Names of what counts, or costs no more than it shows."""


@dataclass(frozen=True, eq=False)
class Lead:
    """A break of a series ahead of a trouble. `lag`: records of the troubled series between both."""

    series: Series
    found: Break
    start: int
    """The record of `series` that leaves its level, and where it has moved to."""
    end: int
    lag: int

    @property
    def is_set(self) -> bool:
        """Whether a program sets it."""
        return self.series.name.startswith(SET)


@dataclass(frozen=True, eq=False)
class Onset:
    """`at`: the record of `series` where it goes wrong. `found`: the break; None for a value that is not finite."""

    series: Series
    at: int
    found: Break | None
    also: tuple[Series, ...]
    """Others that break or end at the same place."""
    nonfinite: tuple[Series, int] | None
    """The first series, and its record, that is not finite from the onset on."""
    leads: tuple[Lead, ...]
    beside: tuple[Beside, ...]


@dataclass(frozen=True, eq=False)
class _Moved:
    series: Series
    found: Break
    start: int
    end: int


def onsets(run: Run, sources: Sequence[Source]) -> tuple[Onset, ...]:
    """The first trouble of a run with what goes ahead of it; none where nothing does."""
    if is_adversarial(run) or is_reinforcement(run):
        return ()  # their losses break by design
    moved = [m for s in _judged(run) for m in _moved(s)]
    bad = [m for m in moved if _is_worse(run, m)]
    broken = _nonfinite(run)
    begins = [(m.series, m.start) for m in bad] + ([broken] if broken is not None else [])
    if not begins:
        return ()
    series, at = min(begins, key=lambda b: (int(b[0].line[b[1]]), b[0] is not main_loss(run)))
    own = next((m.found for m in bad if m.series is series and m.start == at), None)
    leads = tuple(sorted((x for m in moved if m.series is not series and (x := _lead(series, at, m, bad)) is not None),
                         key=lambda x: (-x.lag, not x.is_set)))
    if own is None:  # a ramp has no break of its own: what moved in the midst of it went ahead of nothing
        leads = tuple(x for x in leads if not _rose_before(series, at - x.lag))
    also = tuple(m.series for m in bad if m.series is not series and abs(_records_to(series, at, m)) <= 2)
    beside = tuple(lines_beside(run, sources, series, at))
    found = Onset(series, at, own, also, broken, leads, beside)
    return (found,) if leads or beside else ()


def _judged(run: Run) -> Iterator[Series]:
    """The series of training and evaluation, of several ranks those of the lowest."""
    lowest = min((s.rank for s in run.series if s.rank is not None), default=None)
    mine = [s for s in run.series if s.rank in (None, lowest) and not s.name.startswith(_PLACES)]
    yield from sorted(mine, key=len, reverse=True)[:MOST_SERIES]


def _moved(series: Series) -> Iterator[_Moved]:
    index = np.flatnonzero(series.finite)
    if not len(index):
        return
    cut = bool(index[-1] < len(series) - 1)
    for found in breaks(np.clip(series.values[index], -LARGEST, LARGEST), cut=cut):
        yield _Moved(series, found, int(index[found.start]), int(index[found.end]))


def _is_worse(run: Run, m: _Moved) -> bool:
    """Whether the break is one towards worse, by what the metric is; one that is not known never is."""
    name, up = m.series.name, m.found.up
    if m.series is main_loss(run) or name in ("grad_norm", *TIMES):
        return up
    if name == "loss" and m.series.group != "train":
        return up
    return not up and (name in SPEEDS or name.startswith("accuracy"))


def _nonfinite(run: Run) -> tuple[Series, int] | None:
    """The first value of the loss or the gradient norm from which on none is finite."""
    loss = main_loss(run)
    for series in (loss, run.first("grad_norm")):
        if series is None or not len(series) or series.finite[-1]:
            continue
        finite = np.flatnonzero(series.finite)
        at = int(finite[-1]) + 1 if len(finite) else 0
        if at > 0:
            return series, at
    return None


def _rose_before(series: Series, at: int) -> bool:
    """Whether a series was well above its level already before a record: its last values against those before."""
    values = series.values[max(0, at - RAMP): at]
    values = values[np.isfinite(values)]
    if len(values) < RAMP // 2:
        return False
    before, last = values[: len(values) // 2], float(np.median(values[-3:]))
    return last > float(np.median(before)) + CLEAR * max(noise(before), 1e-3 * abs(float(np.median(before))))


def _records_to(series: Series, at: int, m: _Moved) -> int:
    """Records of `series` from where the other one moves to the trouble; below 0 where it moves later."""
    if m.series.source == series.source:
        return at - int(np.searchsorted(series.line, m.series.line[m.start]))
    if m.series.unit == series.unit != "line":
        return at - int(np.searchsorted(series.position, m.series.position[m.start]))
    return -len(series)


def _lead(series: Series, at: int, m: _Moved, bad: Sequence[_Moved]) -> Lead | None:
    lag = _records_to(series, at, m)
    lead = Lead(m.series, m.found, m.start, m.end, lag)
    if lag > LEAD or lag < (0 if lead.is_set else 1) or (m in bad and lag <= 2):
        return None
    return lead
