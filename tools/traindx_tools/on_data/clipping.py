"""A stretch of rows in which a measurement stops at a level that it passes elsewhere, and how sure that is.

Two things make it: many rows of the stretch have exactly the level and none passes it, and elsewhere rows that come so
far pass it. A quiet part does not reach the level so often; rounded numbers recur below it as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.stretches import Stretch, heaviest

FEWEST = 12
"""Rows at the level, and rows elsewhere that pass it."""
RUN = 3
"""Samples of a signal in a row that have the level: two may be a rounded peak."""
ALSO = 0.2
"""Of the rows at the level, how many may have any other value together: more, and the numbers are rounded."""
NEAR = 0.5
"""Standard deviations below the level within which the next values lie: a mark stands apart."""
CANDIDATES = 3
MIXED = 0.25
"""Of the changes between rows at the level and rows beyond it that no order would make, from which on the level is a
value of its own: outside of a clipped stretch rows have it never, or together."""


@dataclass(frozen=True)
class Peaks:
    """Of each row, float64 shape (rows,): the largest value, and bool: whether it stays there as a clipped one does."""

    top: Array
    flat: Array
    below: Array
    """The next value below the largest: that of the same row of a signal, NaN where rows are single numbers."""
    signal: bool


@dataclass(frozen=True)
class Clipped:
    """Where a measurement stops at a level."""

    stretch: Stretch
    level: float
    at_level: int
    beyond: int
    """Rows elsewhere that pass it."""
    log_chance: float


def peaks_of_numbers(values: Array) -> Peaks:
    """Rows of one number each, float64 shape (rows,)."""
    finite = np.isfinite(values)
    return Peaks(np.where(finite, values, -np.inf), finite, np.full(len(values), np.nan), False)


def peaks_of_signals(signals: Array) -> Peaks:
    """Rows of a signal each, float64 shape (rows, samples)."""
    finite = np.asarray(np.isfinite(signals).all(axis=1))
    signals = np.where(finite[:, None], signals, 0.0)
    top = signals.max(axis=1)
    at = signals == top[:, None]
    runs = at[:, : -RUN + 1].copy()
    for later in range(1, RUN):
        runs &= at[:, later : signals.shape[1] - RUN + 1 + later]
    below = np.where(at, -np.inf, signals).max(axis=1)
    return Peaks(np.where(finite, top, -np.inf), runs.any(axis=1) & finite, below, True)


def clipped(peaks: Peaks, comparisons: float) -> Clipped | None:
    """The surest of the stretches, None where there is none. `log_chance` is over all stretches and comparisons."""
    levels, counts = np.unique(peaks.top[peaks.flat], return_counts=True)
    levels, counts = levels[counts >= FEWEST], counts[counts >= FEWEST]  # of fractions, next to none
    likely = [float(v) for v in levels[np.argsort(-counts)[:CANDIDATES]] if v not in (0.0, -np.inf)]
    found = [c for level in likely if (c := _at(peaks, level, comparisons)) is not None]
    return min(found, key=lambda c: c.log_chance, default=None)


def _at(peaks: Peaks, level: float, comparisons: float) -> Clipped | None:
    rows = len(peaks.top)
    here, beyond = peaks.flat & (peaks.top == level), peaks.top > level
    whole = heaviest(np.where(beyond, -float(rows), here))
    ties = whole.start + np.flatnonzero(here[whole.start : whole.end])
    if len(ties) < FEWEST or beyond.sum() < FEWEST:
        return None
    stretch = Stretch(int(ties[0]), int(ties[-1]) + 1)
    inside = stretch.inside(rows)
    reached = int(((peaks.top >= level) & ~inside).sum())
    share = (int((here & ~inside).sum()) + 1) / (reached + 2)
    chance = len(ties) * math.log(share) + math.log(rows * (rows + 1) / 2) + math.log(2 * CANDIDATES * comparisons)
    if len(ties) > stretch.rows / 2 and not peaks.signal:
        return None
    usual = (_rounded(peaks, inside, level, len(ties)) or _has_a_bound(peaks, ~inside) or _apart(peaks, inside, level)
             or _own_value(here[~inside], beyond[~inside], len(ties)))
    return None if usual else Clipped(stretch, level, len(ties), int(beyond.sum()), chance)


def _rounded(peaks: Peaks, inside: Array, level: float, ties: int) -> bool:
    """Whether other values recur as well."""
    rest = peaks.top[inside & peaks.flat & (peaks.top != level) & np.isfinite(peaks.top)]
    most = int(np.unique(rest, return_counts=True)[1].max()) if len(rest) else 0
    if peaks.signal:
        return len(rest) > ALSO * ties or float(peaks.flat[~inside].mean()) > ALSO
    return most > max(2.0, ALSO * ties)


def _has_a_bound(peaks: Peaks, outside: Array) -> bool:
    """Whether the other rows stop at a level of their own: parts that were each scaled, of a quantity with a bound."""
    tops = peaks.top[outside & np.isfinite(peaks.top)]
    return int((tops == tops.max()).sum()) > RUN


def _own_value(here: Array, beyond: Array, ties: int) -> bool:
    """Whether rows outside have the level as well, among rows that pass it: a least reward, a price for nothing."""
    at = here[here | beyond]
    count, passed = int(at.sum()), int((~at).sum())
    if count < max(FEWEST, ALSO * ties) or not passed:
        return False
    changes = int((at[1:] != at[:-1]).sum())
    return changes >= MIXED * 2.0 * count * passed / len(at)


def _apart(peaks: Peaks, inside: Array, level: float) -> bool:
    """Whether nothing lies close below the level."""
    if peaks.signal:
        at = inside & (peaks.top == level)
        spread = float(peaks.top[np.isfinite(peaks.top)].std())
        return float(np.median(level - peaks.below[at])) > NEAR * max(spread, 1e-30)
    some = peaks.top[inside & np.isfinite(peaks.top)]
    near = np.unique(some[some < level])[-FEWEST:]
    return len(near) < FEWEST or level - near[0] > NEAR * float(some.std())
