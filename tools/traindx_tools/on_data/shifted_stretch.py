"""The stretch of a file in which a number fits the row beside its own, by how much better it fits.

Each row gives a likelihood ratio: what is left of the number of the neighbour against what is left of its own, both in
the spread that they have where nothing is shifted. The largest sum over a stretch of n rows reaches S by chance with
probability n exp(-S) at most (a martingale for each start). Two more things must hold: within the stretch its own
numbers go with the rows half as well as elsewhere at most, the neighbours' as well as own ones do elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL, independent_share
from traindx_tools.on_data.stretches import Stretch, heaviest

FEWEST = 24
"""Rows of the stretch, and others."""
CLEAR = 0.6
"""Times the spread of a neighbour's number around what is said, that one of its own has at most."""
SOME = 4000
"""Rows of all files whose spread is taken."""
MOST = 3.0
"""What one row counts at most, either way."""
LOST, KEPT = 0.5, 0.9
"""Of the correlation elsewhere: that of the own numbers within the stretch at most, of the neighbours' at least."""
WHOLE = 0.9


@dataclass(frozen=True)
class Shifted:
    """The stretch, and the logarithm of its chance."""

    stretch: Stretch
    log_chance: float


def spreads_of(pairs: Sequence[Array], lag: int) -> tuple[float, float] | None:
    """The spread of what is left of the own numbers, and of the neighbours'; None where both are too alike to tell.

    `pairs`: float64 shape (rows, 2) of each file, what the other fields say and the number.
    """
    step = max(1, sum(map(len, pairs)) // SOME)
    narrow, wide = (1.4826 * float(np.median(np.abs(np.concatenate(
        [p[::step, 0] - p[(np.arange(0, len(p), step) + k) % len(p), 1] for p in pairs if len(p)])))) for k in (0, lag))
    return (narrow, wide) if 0 < narrow <= CLEAR * wide else None


def shifted_stretch(pairs: Array, lag: int, spreads: tuple[float, float], comparisons: float) -> Shifted | None:
    """In one file. `spreads`: of all files."""
    said, value = pairs[:, 0], pairs[:, 1]
    if len(said) < 3 * FEWEST:
        return None
    (narrow, wide), moved = spreads, np.roll(value, -lag)
    weights = ((said - value) ** 2 - (said - moved) ** 2) / 2.0 * (1.0 / narrow**2 - 1.0 / wide**2)
    weights = np.clip(weights, -MOST, MOST)
    weights[len(weights) - lag if lag > 0 else 0: None if lag > 0 else -lag] = -MOST
    stretch = heaviest(weights)
    inside = stretch.inside(len(weights))
    if stretch.rows < FEWEST or stretch.rows > WHOLE * len(weights) or (~inside).sum() < FEWEST:
        return None
    usual = _goes_with(said[~inside], value[~inside])
    if _goes_with(said[inside], value[inside]) > LOST * usual or _goes_with(said[inside], moved[inside]) < KEPT * usual:
        return None
    chance = -float(weights[inside].sum()) * independent_share(weights[~inside]) + math.log(len(weights)) + math.log(
        max(1.0, comparisons))
    return Shifted(stretch, chance) if chance < math.log(LEVEL) else None


def _goes_with(one: Array, other: Array) -> float:
    if len(one) < 3 or not (one.std() > 1e-12 and other.std() > 1e-12):
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
