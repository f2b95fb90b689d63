"""Which rows go along with the jumps of a loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

JUMPS, TIMES, DEVIATIONS, AROUND, START, STEPS = 3, 3.0, 4.0, 10, 10, 40
"""A jump leads above the loss of the first steps: one from next to nothing to little is a hard row, and no jump."""
SHARE, MOSTLY = 0.5, 0.8
FEW = 0.05
"""Share of all rows that those which jump may be: more are no odd rows."""


@dataclass(frozen=True)
class StepSeen:
    """One training step: mean loss of its rows, the row that has the most of it, and how much of it."""

    step: int
    loss: float
    row: int
    row_loss: float
    share: float


@dataclass(frozen=True)
class Jumps:
    """`steps`: where the loss jumps; `rows`: those that have most of it there, the most frequent first."""

    steps: tuple[int, ...]
    rows: tuple[int, ...]
    row_loss: float
    usual: float
    """Median loss of all steps."""
    share: float


def jumps(steps: Sequence[StepSeen], rows: int) -> Jumps | None:
    """The jumps, where few rows go along with most of them. `rows`: how many there are."""
    if len(steps) < STEPS:
        return None
    loss = np.array([s.loss for s in steps])
    if not np.isfinite(loss).all():
        return None
    around = np.array([np.median(loss[max(0, i - AROUND):i + AROUND + 1]) for i in range(len(loss))])
    above = np.log(np.maximum(loss, 1e-30) / np.maximum(around, 1e-30))
    spread = 1.4826 * float(np.median(np.abs(above)))
    start = float(np.median(loss[:START]))
    up = np.flatnonzero((above > max(math.log(TIMES), DEVIATIONS * spread)) & (loss > start))
    told = [steps[int(i)] for i in up]
    alone = [s for s in told if s.share >= SHARE and s.row >= 0]
    if len(told) < JUMPS or len(alone) < MOSTLY * len(told):
        return None
    counts = Counter(s.row for s in alone)
    if len(counts) > max(2, FEW * rows):
        return None
    return Jumps(tuple(s.step for s in told), tuple(r for r, _ in counts.most_common()),
                 float(np.median([s.row_loss for s in alone])), float(np.median(loss)),
                 float(np.median([s.share for s in alone])))
