"""Spikes at even distances: too low to stand out one by one, and too sharp for a line in the periodogram.

Records above a few scatters are taken whatever they are; a period is one at whose places nearly all have such a record,
over the whole length. Were they anywhere, that many of the places would be hit with a binomial chance, over all periods
and phases.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS
from traindx_tools.on_logs.anomalies.scatter import Scatter, scatter_of
from traindx_tools.on_logs.run import Floats, Ints

LEVELS = (3.0, 4.0, 6.0)
SHORTEST, PLACES = 4, 8
"""Records of a period, and periods that a series holds at least."""
HIT = 0.8
"""Share of the places."""
COMMON = 0.1
"""Share of all records above a level from which it says nothing."""
TRIED = 12
"""Distances between neighbours that are tried as a period, the most frequent ones."""


def comb(y: Floats) -> tuple[float, float] | None:
    """Period in records and chance of the surest comb of spikes, up or down; None without one."""
    found = scatter_of(y)
    if found is None:
        return None
    every = [one for sign in (1.0, -1.0) for level in LEVELS if (one := _at(found, sign, level)) is not None]
    return min(every, key=lambda one: one[1], default=None)


def _at(found: Scatter, sign: float, level: float) -> tuple[float, float] | None:
    n = len(found.rest)
    above = np.flatnonzero(sign * found.rest > level)
    if not PLACES * HIT <= len(above) <= COMMON * n:
        return None
    best = max(((_score(above, period, n), period) for period in _periods(above, n)), default=(0.0, 0))
    tests = 2 * len(LEVELS) * (n / PLACES) ** 2
    chance = min(1.0, tests * math.exp(-best[0]))
    return (float(best[1]), chance) if chance <= FALSE_ALARMS else None


def _periods(above: Ints, n: int) -> list[int]:
    apart = Counter(np.concatenate([np.diff(above), above[2:] - above[:-2]]).tolist())
    return [p for p, _ in apart.most_common(TRIED) if SHORTEST <= p <= n // PLACES]


def _score(above: Ints, period: int, n: int) -> float:
    """Minus the logarithm of the chance that so many places of one phase are hit (Chernoff); 0 below `HIT`."""
    places = n // period
    hits = min(int(np.bincount(above % period).max()), places)
    share, rate = hits / places, len(above) / n
    if share < HIT:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - rate)) if share < 1 else 0.0
    return places * (share * math.log(share / rate) + rest)
