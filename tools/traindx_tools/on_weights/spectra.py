"""Whether a matrix is still noise by its spectrum, whatever drew it: the edge of Marchenko and Pastur (1967).

The largest singular value of independent values of deviation s is near s (sqrt(rows) + sqrt(columns)). Gradients are of
low rank: a hundred steps lift the first directions above that edge long before the spread of the values changes.
"""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_code.answers import kept
from traindx_tools.on_weights.statistics import Stats

SMALLEST, MOST_BYTES = 16, 2**24
"""Length of the shorter side below which the edge is not sharp; bytes of a matrix that is looked at."""
_ITERATIONS = 24


@kept
def above_edge(stats: Stats) -> float | None:
    """The largest singular value over the edge, in units of `tolerance` above one; None where it is not told.

    At most 1 for noise; a matrix of which 0.5 is said lies at the edge.
    """
    shape = stats.tensor.shape
    if len(shape) < 2 or stats.tensor.nbytes > MOST_BYTES or stats.finite < stats.size or stats.constant:
        return None
    rows, columns = shape[0], math.prod(shape[1:])
    if min(rows, columns) < SMALLEST:
        return None
    values = stats.tensor.load().astype(np.float64).reshape(rows, columns)
    return edge_of(values) if float(values.std()) > 0 else None


def edge_of(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """The same of a matrix that is loaded, and is not constant."""
    rows, columns = values.shape
    edge = float(values.std()) * (rows**0.5 + columns**0.5)
    return float((_largest(values) / edge - 1) / tolerance(rows, columns))


def tolerance(rows: int, columns: int) -> float:
    """By what share noise may pass the edge: the law of Tracy and Widom has a width that falls with size^(-2/3)."""
    return 2.0 * math.pow(min(rows, columns), -2 / 3)


def _largest(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """The largest singular value, by power iteration: a few parts in a hundred below the true one at an edge."""
    vector = np.random.default_rng(0).standard_normal(values.shape[1])
    size = 0.0
    for _ in range(_ITERATIONS):
        vector = values.T @ (values @ vector)
        size = float(np.linalg.norm(vector))
        vector /= max(size, 1e-300)
    return math.sqrt(size)
