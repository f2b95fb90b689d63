"""Rows of an evaluation whose counter says the epoch, among rows of training whose counter says the step.

MMEngine writes `{"loss": 0.8, "epoch": 2, "step": 500}` while it trains and `{"mse": 1.3, "step": 2}` when it has
evaluated. Such rows are told by what the file says itself: they lack the epoch that all others have, they hold a
measure that no other row has, and their counter is the epoch of the row before and no step that could follow it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.names import TRAIN, VALIDATION, identify
from traindx_tools.on_logs.run import Floats, Ints, Run, Series


def told_by_epoch(run: Run) -> Run:
    """The run with such rows in the group of the validation and at their epoch; itself where it has none."""
    lines = _evaluations(run.series)
    if not len(lines):
        return run
    return replace(run, series=tuple(part for s in run.series for part in _parted(s, lines)))


def _evaluations(series: tuple[Series, ...]) -> Ints:
    """The lines of such rows, ascending; none where one row that lacks the epoch is of another kind."""
    line, step, epoch = _rows(series)
    lacking = np.isnan(epoch) & np.isfinite(step)
    if not lacking.any() or lacking.all() or not np.isfinite(epoch[0]):
        return line[:0]
    last = np.maximum.accumulate(np.where(lacking, 0, np.arange(len(line))))
    if not np.array_equal(step[lacking], epoch[last][lacking]) or not (step <= step[last])[lacking].all():
        return line[:0]
    found = line[lacking]
    own = any(len(s) and s.group == TRAIN and np.isin(s.line, found).all() for s in series)
    return found if own else found[:0]


def _rows(series: tuple[Series, ...]) -> tuple[Ints, Floats, Floats]:
    """Line, step and epoch of each row."""
    if not series:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    line, first = np.unique(np.concatenate([s.line for s in series]), return_index=True)
    return line, np.concatenate([s.step for s in series])[first], np.concatenate([s.epoch for s in series])[first]


def _parted(series: Series, lines: Ints) -> tuple[Series, ...]:
    """A series as that of training and that of the evaluations."""
    if series.group != TRAIN or identify(series.original).group is not None:
        return (series,)
    evaluated = np.isin(series.line, lines)
    kept = (_only(series, ~evaluated), _placed(_only(series, evaluated)))
    return tuple(s for s in kept if len(s))


def _only(series: Series, which: NDArray[np.bool_]) -> Series:
    return replace(series, values=series.values[which], step=series.step[which], epoch=series.epoch[which],
                   time=series.time[which], line=series.line[which])


def _placed(series: Series) -> Series:
    return replace(series, group=VALIDATION, epoch=series.step, step=np.full(len(series), np.nan))
