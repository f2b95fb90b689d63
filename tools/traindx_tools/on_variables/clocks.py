"""Whether the times of two tables that are joined are of one clock: units, zones, and at which shift the values go
together.

Times are int64 nanoseconds where they are dates, and numbers otherwise. Clocks of two zones differ by a multiple of a
quarter of an hour, of at most fourteen hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 50
"""Different times below which nothing is said."""
MOST = 20_000
QUARTER, HOUR = 900 * 10**9, 3600 * 10**9
MOST_QUARTERS = 56
APART, FOUND = 0.7, 0.95
"""Share of the times that find a partner as they are, and with the same shift, for one that is surely meant."""
EPOCH = (6e8, 4.2e9)
"""Seconds since 1970, from 1989 to 2103."""
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
OUTSIDE = 0.95
GAIN, TIGHT = 0.25, 0.6
"""Share of the variance that a shift has to explain more, and in all."""
MOST_COLUMNS = 5
Times = NDArray[np.int64]
Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Clocks:
    """How two clocks differ. `kind`: "unit", "zone" (as the times say that they were made), "shift" (as partners say)
    or "values" (as numbers that go together say). `before`, `after`: the share of times, or of variance, as it is and
    with the clocks set right."""

    kind: str
    left: str
    right: str
    before: float = 0.0
    after: float = 0.0
    hours: float = 0.0


def units_differ(left: NDArray[np.float64], right: NDArray[np.float64]) -> Clocks | None:
    """Numbers that count seconds since 1970 in one table and thousandths, millionths of them in the other."""
    one, other = _unit(left), _unit(right)
    if one is None or other is None or one == other or min(len(left), len(right)) < FEWEST:
        return None
    low, high = (float(f(right)) / UNITS[other] for f in (np.min, np.max))
    seconds = left / UNITS[one]
    return Clocks("unit", one, other, 0.0, float(((seconds >= low) & (seconds <= high)).mean()))


def _unit(times: NDArray[np.float64]) -> str | None:
    """The unit in which all are times of our years; a tenth of them may be missing."""
    x = times[np.isfinite(times)]
    if not len(x) or len(x) < 0.9 * len(times):
        return None
    low, high = float(x.min()), float(x.max())
    return next((u for u, scale in UNITS.items() if EPOCH[0] <= low / scale and high / scale <= EPOCH[1]), None)


def zones_differ(left: str | None, right: str | None, offsets: tuple[float, float]) -> Clocks | None:
    """The zones of which local times were taken; `offsets`: theirs from UTC, in hours."""
    if left is None or right is None or offsets[0] == offsets[1]:
        return None
    return Clocks("zone", left, right, hours=offsets[1] - offsets[0])


def shift_of_partners(left: Times, right: Times) -> Clocks | None:
    """Times of which few have a partner, and nearly all have one a whole number of quarters of an hour later."""
    one, other = np.unique(left)[:MOST], np.unique(right)
    if len(one) < FEWEST or len(other) < FEWEST:
        return None
    before = float(np.isin(one, other).mean())
    if before >= APART:
        return None
    shares = {k: float(np.isin(one + k * QUARTER, other).mean()) for k in _quarters()}
    k = max(shares, key=lambda q: (shares[q], -abs(q)))
    return Clocks("shift", "", "", before, shares[k], k / 4) if shares[k] >= FOUND else None


def shift_of_values(left: Times, right: Times, of_left: Columns, of_right: Columns) -> Clocks | None:
    """The shift, in whole hours, at which a number of the one table goes along with one of the other far better than as
    they are joined; None where it does not, or where both hold one series (a lag that is made on purpose)."""
    order = np.argsort(right, kind="stable")
    times = right[order]
    rows = np.linspace(0, len(left) - 1, min(len(left), 4000)).astype(np.int64) if len(left) else np.zeros(0, np.int64)
    if len(rows) < FEWEST or len(times) < FEWEST:
        return None
    asked = left[rows]
    places = {h: _nearest(times, asked + h * HOUR) for h in range(-14, 15)}
    best: Clocks | None = None
    for one, a in list(of_left.items())[:MOST_COLUMNS]:
        for other, b in list(of_right.items())[:MOST_COLUMNS]:
            value = _shift(a[rows], b[order], places, one, other)
            if value is not None and (best is None or value.after > best.after):
                best = value
    return best


def _shift(a: NDArray[np.float64], b: NDArray[np.float64], places: dict[int, tuple[Times, NDArray[np.bool_]]],
           one: str, other: str) -> Clocks | None:
    shares = {h: _explained(a, b, *place) for h, place in places.items()}
    hour = max(shares, key=lambda h: shares[h])
    at, near = places[hour]
    same = near & np.isclose(a, b[at], rtol=1e-6)
    if not hour or shares[hour] < TIGHT or shares[hour] - shares[0] < GAIN or same.mean() > 0.5:
        return None
    return Clocks("values", one, other, shares[0], shares[hour], float(hour))


def _nearest(times: Times, asked: Times) -> tuple[Times, NDArray[np.bool_]]:
    """For each time the place of the last one that is not later, and whether it is less than an hour before."""
    at = np.clip(np.searchsorted(times, asked, side="right") - 1, 0, len(times) - 1)
    return at.astype(np.int64), (asked >= times[at]) & (asked - times[at] < HOUR)


def _explained(a: NDArray[np.float64], b: NDArray[np.float64], at: Times, near: NDArray[np.bool_]) -> float:
    """The square of the correlation of the pairs that are there."""
    x, y = a[near], b[at[near]]
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    if len(x) < FEWEST or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def _quarters() -> Sequence[int]:
    return [k for k in range(-MOST_QUARTERS, MOST_QUARTERS + 1) if k]
