"""Held-out values that no counter places: they are those of the step that the training told last before them.

A program prints "step 400 loss 0.52", then "val loss 0.61", or writes such rows to a table. What has a counter of its
own, a step or an epoch, keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_logs.readers.names import TEST, TRAIN, VALIDATION
from traindx_tools.on_logs.run import Floats, Ints, Run, Series

FEWEST = 3
"""Records of training from which on it counts."""
MOST_AGAIN = 0.2
"""Share of the values of a series that may follow another one of it without a record of training in between: an
evaluation that prints its batches is no record a step."""
FROM_THE_START = 2.0
"""Distances of two records within which the first one stands of a run that began at its start."""


@dataclass(frozen=True)
class _Training:
    """Where the records of training stand, by line."""

    line: Ints
    step: Floats
    epoch: Floats

    def before(self, lines: Ints) -> Ints:
        """The record before each line, -1 for none."""
        return np.searchsorted(self.line, lines, side="right") - 1

    @property
    def start(self) -> float:
        """The step of what was measured before the first record: 0 where the run began there, NaN elsewhere."""
        near = self.step[0] <= FROM_THE_START * float(np.median(np.abs(np.diff(self.step))))
        return 0.0 if near else float("nan")


def placed_by_training(run: Run) -> Run:
    """The run of one source with held-out series without a place at the steps of its training."""
    homeless = [s for s in run.series if s.group in (VALIDATION, TEST) and _is_without_place(s)]
    if not homeless:
        return run
    ranks: dict[int | None, _Training | None] = {}
    told = {}
    for series in homeless:
        if series.rank not in ranks:
            ranks[series.rank] = _training(run, series.rank)
        training = ranks[series.rank]
        if training is not None:
            told[id(series)] = _placed(series, training)
    return replace(run, series=tuple(told.get(id(s), s) for s in run.series)) if told else run


def _is_without_place(series: Series) -> bool:
    return bool(len(series)) and not (np.isfinite(series.step) | np.isfinite(series.epoch)).any()


def _training(run: Run, rank: int | None) -> _Training | None:
    """The records of training of a rank; None where too few have a step or an epoch, or some have none."""
    own = [s for s in run.series if s.group == TRAIN and s.rank in (rank, None) and len(s) >= FEWEST]
    main = max((s for s in own if s.unit != "line"), key=lambda s: (s.unit == "step", len(s)), default=None)
    return None if main is None else _Training(main.line, main.step, main.epoch)


def _placed(series: Series, training: _Training) -> Series:
    at = training.before(series.line)
    if np.count_nonzero(np.diff(at) == 0) > MOST_AGAIN * len(series):
        return series
    first = at < 0
    step = np.where(first, training.start, training.step[np.maximum(at, 0)])
    epoch = np.where(first, np.nan, training.epoch[np.maximum(at, 0)])
    placed = np.isfinite(step).all() or np.isfinite(epoch).all()
    return replace(series, step=step, epoch=epoch) if placed else series
