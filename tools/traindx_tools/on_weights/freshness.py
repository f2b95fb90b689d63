"""Whether a matrix, or a part of it, is still independent draws of one distribution, or clearly is not any more.

Independent draws have rows and columns of one norm, but for sampling, a largest singular value at the edge of noise,
and the shape of a distribution that initialisers draw from. Training gives some units and some inputs larger weights
than others and lifts a few directions: after a hundred steps each of the three tells it by many standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.spectra import edge_of
from traindx_tools.on_weights.statistics import Stats

SMALLEST, MOST_BYTES = 16, 2**24
"""Length of the shorter side below which nothing is told; bytes of a matrix that is looked at."""
_KURTOSES = (1.8, 2.366, 3.0)
"""Fourth standardised moments of a uniform distribution, of a normal one that is cut at two deviations, of a normal."""
_AT_EDGE, _ABOVE = 0.5, 1.5
"""Tolerances above the edge of noise: of draws at most, of what was trained at least."""
_EVEN, _UNEVEN = 3.5, 8.0
"""Standard errors by which norms of rows or columns scatter more than those of draws: at most, and at least."""
_SHAPE = 5.0
"""Standard errors of the fourth moment."""
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Freshness:
    """`uneven`: standard errors of the scatter of norms; `shape`: those of the fourth moment, from the nearest
    distribution of an initialiser."""

    matrix: Matrix
    uneven: float
    shape: float

    @cached_property
    def above(self) -> float:
        """Tolerances above the edge of noise; the dearest of the three, and the others decide most matrices."""
        return edge_of(self.matrix)

    @property
    def drawn(self) -> bool:
        """Whether it is as an initialiser drew it."""
        return self.uneven <= _EVEN and self.shape <= _SHAPE and self.above <= _AT_EDGE

    @property
    def trained(self) -> bool:
        """Whether it clearly is not."""
        return self.uneven >= _UNEVEN or self.above >= _ABOVE


def matrix_of(stats: Stats) -> Matrix | None:
    """The values with two axes, outputs or inputs first; None where it is none, too small, too large, or not whole."""
    shape = stats.tensor.shape
    if len(shape) < 2 or stats.tensor.nbytes > MOST_BYTES or stats.finite < stats.size or stats.constant:
        return None
    first = shape[0], math.prod(shape[1:])
    last = math.prod(shape[:-1]), shape[-1]
    two = first if min(first) >= min(last) else last
    return stats.tensor.load().astype(np.float64).reshape(two) if min(two) >= SMALLEST else None


def freshness(values: Matrix) -> Freshness | None:
    """What a matrix tells; None for one that is small, or constant."""
    squares = values**2
    mean = float(squares.mean())
    if min(values.shape) < SMALLEST or not mean > 0:
        return None
    kurtosis = float((squares**2).mean()) / mean**2
    error = max(1e-9, (24 / values.size) ** 0.5)
    shape = min(abs(kurtosis - k) for k in _KURTOSES) / error
    uneven = max(_scatter(squares, axis, mean, kurtosis) for axis in (0, 1))
    return Freshness(values, uneven, shape)


def _scatter(squares: Matrix, axis: int, mean: float, kurtosis: float) -> float:
    """By how many standard errors the variance of the norms along an axis is above that of independent values."""
    lines = squares.mean(axis=axis)
    expected = max(0.1, min(kurtosis, 3.0) - 1) * mean**2 / squares.shape[axis]
    return float((lines.var() / expected - 1) * math.sqrt((len(lines) - 1) / 2))


def parts(values: Matrix) -> dict[str, Matrix]:
    """Thirds and halves of the longer axis, as packed projections have them, by what they are called."""
    axis = 0 if values.shape[0] >= values.shape[1] else 1
    length, other = values.shape[axis], values.shape[1 - axis]
    count = 3 if length == 3 * other else 2 if length >= 2 * other and length % 2 == 0 else 0
    if not count or length // count < SMALLEST:
        return {}
    size, called = length // count, ("rows", "columns")[axis]
    return {f"{called} {i * size}-{(i + 1) * size - 1}": values.take(range(i * size, (i + 1) * size), axis=axis)
            for i in range(count)}
