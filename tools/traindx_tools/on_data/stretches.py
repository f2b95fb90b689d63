"""The stretch of consecutive rows in which something holds that does not hold elsewhere, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import paired_tail


@dataclass(frozen=True)
class Stretch:
    """Rows `start` to before `end`."""

    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.end - self.start

    def inside(self, rows: int) -> Array:
        """bool shape (rows,)."""
        mask = np.zeros(rows, bool)
        mask[self.start : self.end] = True
        return mask


def heaviest(weights: Array) -> Stretch:
    """The stretch with the largest sum of float `weights` (rows,): the maximum-likelihood one for log ratios."""
    sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    lowest = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - lowest))
    start = int(np.argmin(sums[: end + 1]))
    return Stretch(start, end)


def commonest(hits: Array) -> Stretch:
    """`heaviest` where a hit counts 1 and a miss -1: in whole numbers of half the size."""
    sums = np.zeros(len(hits) + 1, np.int32)
    np.cumsum(hits.view(np.int8), dtype=np.int32, out=sums[1:])
    sums *= 2
    sums -= np.arange(len(sums), dtype=np.int32)
    end = int(np.argmax(sums - np.minimum.accumulate(sums)))
    return Stretch(int(np.argmin(sums[: end + 1])), end)


def log_chance(gained: int, lost: int, rows: int, comparisons: float) -> float:
    """Log of a bound on the chance that any stretch of `rows` gains so much: over all stretches and comparisons."""
    p = paired_tail(gained, lost)
    return math.log(max(p, 1e-300)) + math.log(max(1.0, rows * (rows + 1) / 2.0)) + math.log(max(1.0, comparisons))
