"""A run of rows of a table that are draws of one distribution, among rows that are none.

Squared norms of independent normal draws scatter by sqrt(2 / width) around their mean, those of uniform ones by less;
and draws point nowhere: no direction holds more of them than the edge of Marchenko and Pastur (1967) allows. Trained
rows have directions in common. Such a run is found at any place; its borders are where the norms leave its range, and
hardly a row elsewhere lies in that range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 12
"""Rows of a run."""
DRAWN = 1.3
"""Times the scatter of draws that a run has at most."""
APART, LEAST_APART = 4.0, math.log(2.0)
"""Scatters of draws between the mean of the run and that of the others, on a logarithmic scale; and that at least."""
NOWHERE, SOMEWHERE = 1.1, 1.25
"""Times the edge that a run's largest direction has at most, and that of the other rows at least."""
MOST_ROWS = 20_000
"""Other rows of which the largest direction is taken."""
WITHIN = 5.0
"""Scatters of draws around the mean of a run within which the norms of draws lie, on a logarithmic scale."""
TRIM = 0.05


@dataclass(frozen=True)
class Run:
    """Rows `at`..`at + rows - 1`."""

    at: int
    rows: int
    scale: float
    """Root mean square of one value of the run."""
    others: float
    """The same of the other rows, the ends of their norms left out."""
    log_chance: float
    """Of so many rows in the run's range after each other, by how many others are in it; over all places."""


def fresh_run(squares: NDArray[np.float64], width: int) -> Run | None:
    """The longest such run of the rows whose squared norms are given."""
    chance = math.sqrt(2 / width)
    for length in _lengths(len(squares)):
        means, spreads = _windows(squares, length)
        usual = float(np.median(squares))
        fits = (means > 0) & (spreads <= DRAWN * chance * means) & (
            np.abs(np.log(np.maximum(means, 1e-300) / max(usual, 1e-300))) > max(LEAST_APART, APART * chance))
        if fits.any():
            at = int(np.flatnonzero(fits)[np.argmin((spreads / np.maximum(means, 1e-300))[fits])])
            return _judged(squares, *_grown(squares, at, length, usual, chance), chance, width)
    return None


def _lengths(rows: int) -> list[int]:
    """Longest first."""
    most = rows // 2
    return [n for n in (most >> k for k in range(20)) if n >= FEWEST]


def _windows(squares: NDArray[np.float64], length: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and spread of each window."""
    scale = float(squares.max()) or 1.0
    values = squares / scale
    sums, powers = (np.concatenate([[0.0], np.cumsum(v)]) for v in (values, values**2))
    means = (sums[length:] - sums[:-length]) / length
    variance = (powers[length:] - powers[:-length]) / length - means**2
    return means * scale, np.sqrt(np.maximum(variance, 0.0)) * scale


def _grown(squares: NDArray[np.float64], at: int, length: int, usual: float, chance: float) -> tuple[int, int]:
    """The run with the rows beside it that lie in its range: where it begins and ends.

    The range ends where draws do, or half the way to the usual norm of all rows.
    """
    mean = float(squares[at:at + length].mean())
    far = min(WITHIN * chance, 0.5 * abs(math.log(mean / max(usual, 1e-300))))
    inside = np.abs(np.log(np.maximum(squares, 1e-300) / mean)) <= far
    outside = np.flatnonzero(~inside)
    before, after = outside[outside < at], outside[outside >= at + length]
    return (int(before[-1]) + 1 if len(before) else 0), (int(after[0]) if len(after) else len(squares))


def _judged(squares: NDArray[np.float64], at: int, end: int, chance: float, width: int) -> Run | None:
    own, others = squares[at:end], np.concatenate([squares[:at], squares[end:]])
    if len(others) < FEWEST:
        return None
    middle = np.sort(others)[int(TRIM * len(others)): len(others) - int(TRIM * len(others))]
    apart = abs(math.log(own.mean() / max(float(middle.mean()), 1e-300)))
    if own.std() > DRAWN * chance * own.mean() or apart <= max(LEAST_APART, APART * chance):
        return None
    held = int(((others >= own.min()) & (others <= own.max())).sum())
    log_chance = len(own) * math.log(min(1.0, (held + 1) / len(others))) + math.log(len(squares))
    return Run(at, end - at, math.sqrt(own.mean() / width), math.sqrt(middle.mean() / width), log_chance)


def points_nowhere(table: NDArray[np.float64], run: Run) -> bool:
    """Whether no direction holds more of the run than of draws, while one holds more of the other rows."""
    others = np.concatenate([table[:run.at], table[run.at + run.rows:]])
    others = others[:: -(-len(others) // MOST_ROWS)]
    return _largest(table[run.at:run.at + run.rows]) <= NOWHERE and _largest(others) >= SOMEWHERE


def _largest(rows: NDArray[np.float64]) -> float:
    """The largest eigenvalue of the mean of outer products, over the edge of that of draws of the same size."""
    count, width = rows.shape
    edge = float((rows**2).mean()) * (1 + math.sqrt(width / count))**2
    return float(np.linalg.eigvalsh(rows.T @ rows / count)[-1]) / edge if edge > 0 else math.inf
