"""Which grid a table of positions was trained on: places above each other are alike, one line apart in the sequence.

The autocorrelation of the rows of a table has a maximum at the length of a line, half a line away from which it is low
on both sides. A table that was interpolated along the sequence has lines longer by the same factor, and its values
between two old rows lie on a straight line, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEP, _SHORTEST, _LONGEST = 0.25, 2.5, 2.5
"""Lengths that are tried: by what step, from which on, and the table's length over the last."""
_FIRST = 0.85
"""Share of the best that the shortest length has: twice and three times a line are nearly as good."""
_MOST = 4096
"""Rows of a table that is looked at."""
_EXACT = 2e-3
"""What interpolation leaves, in norms of the table; in half precision too."""
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Lines:
    """What the autocorrelation says. Scores are at most one."""

    length: float
    score: float
    expected: float
    """The score of the length that was expected."""


def lines_of(table: Table, expected: float) -> Lines | None:
    """The length of a line in a table (places, width); None where it is too short, or without any order."""
    rows = len(table)
    if not 9 <= rows <= _MOST or not np.isfinite(table).all():
        return None
    centred = table - table.mean(axis=0)
    size = float((centred**2).sum()) / max(1, rows)
    if not math.isfinite(size) or size <= 0:
        return None
    spectrum = np.fft.rfft(centred, 2 * rows, axis=0)
    power = (spectrum.real**2 + spectrum.imag**2).sum(axis=1)
    lags = np.fft.irfft(power, 2 * rows)[:rows] / np.arange(rows, 0, -1) / size
    lengths = np.arange(_SHORTEST, rows / _LONGEST, _STEP)
    scores = np.array([_score(lags, w) for w in lengths])
    if not len(scores):
        return None
    tops = [i for i in range(len(scores)) if scores[i] == scores[max(0, i - 2): i + 3].max()]
    best = next((i for i in tops if scores[i] >= _FIRST * scores.max()), int(scores.argmax()))
    return Lines(float(lengths[best]), float(scores[best]), _score(lags, expected))


def _score(lags: NDArray[np.float64], length: float) -> float:
    at = np.interp([length / 2, length, 1.5 * length], np.arange(len(lags)), lags)
    return float(at[1] - (at[0] + at[2]) / 2)


def straightened(table: Table, old: int) -> bool:
    """Whether a table is that of `old` rows, fewer than it has, interpolated linearly along the sequence."""
    rows = len(table)
    if not 4 <= old < rows:
        return False
    inner = np.clip((np.arange(rows) + 0.5) * old / rows - 0.5, 0, old - 1)
    for places in (inner, np.linspace(0, old - 1, rows)):  # with corners at their places, or aligned
        low = np.minimum(places.astype(np.intp), old - 2)
        weights = np.zeros((rows, old))
        weights[np.arange(rows), low] = 1 - (places - low)
        weights[np.arange(rows), low + 1] = places - low
        found, *_ = np.linalg.lstsq(weights, table, rcond=None)
        if np.linalg.norm(weights @ found - table) <= _EXACT * np.linalg.norm(table):
            return True
    return False
