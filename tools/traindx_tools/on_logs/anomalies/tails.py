"""From which height on peaks are no part of the tail that the others form: the largest gap among order statistics.

Peaks are sorted, X1 >= X2 >= ... >= XK. In a tail of Pareto form the scaled gaps i (log Xi - log Xi+1) are independent
and exponential with the tail's index as mean (Renyi 1953); the index is estimated from the peaks below the gap (Hill
1975), so that outliers cannot hide each other. Where the peaks fall off as an exponential of a power does, as those of
Gaussian noise do, X^theta takes the place of log X: theta is the largest power whose gaps below do not grow with
height, by two standard errors. A gap of g times the mean over N peaks has chance (1 + g/N)^-N. Gap i counts i (i + 1)
times, which is 1 over all of them: so it bounds the false alarms of a whole series whatever its length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.run import Floats

FEWEST = 20
"""Peaks below a gap from which its tail is known well enough."""
OUTLYING = 0.4
"""Share of the peaks that may stand above the gap."""
SURE = 4.0
"""Two standard errors of the ratio of two means of half of the gaps each, times the root of their number."""
_POWERS = (3.0, 2.5, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75)
"""Powers that are tried, the lightest tail first: Gaussian noise has 2, Laplace noise 1."""


@dataclass(frozen=True)
class Gap:
    """`level`: the least of the peaks above. `count`: how many they are. `chance`: bound over all gaps looked at."""

    level: float
    count: int
    chance: float


def outlying(peaks: Floats, most: int) -> Gap | None:
    """The surest gap among the `most` largest of positive peaks; None where there are too few peaks."""
    x = np.sort(peaks[peaks > 0])[::-1][:most]
    tried = min(int(OUTLYING * len(x)), len(x) - FEWEST - 1)
    if tried < 1:
        return None
    looked = np.arange(1, tried + 1)
    chances = _chances(np.minimum(x / x[-1], 1e60), tried) * looked * (looked + 1)
    best = int(chances.argmin())
    return Gap(float(x[best]), best + 1, min(1.0, float(chances[best])))


def _chances(x: Floats, tried: int) -> Floats:
    """The chance of each of the first gaps, by the lightest tail that the peaks below it allow, else a Pareto tail."""
    found = _of_tail(np.log(x), tried)[0]
    open_ = np.ones(tried, dtype=bool)
    for power in _POWERS:
        chances, growth, rest = _of_tail(x**power, tried)
        fits = open_ & (growth <= 1.0 - SURE / rest**0.5)
        found = np.where(fits, chances, found)
        open_ &= ~fits
    return found


def _of_tail(scaled: Floats, tried: int) -> tuple[Floats, Floats, Floats]:
    """For each of the first gaps: its chance, by how much the gaps below it grow upwards, and how many these are.

    The gaps j (Yj - Yj+1) are independent and of one mean where the excesses of Y are exponential.
    """
    spacings = np.arange(1, len(scaled)) * (scaled[:-1] - scaled[1:])
    total = np.concatenate([[0.0], np.cumsum(spacings)])
    i = np.arange(1, tried + 1)
    rest = len(spacings) - i
    half = i + rest // 2
    below = np.maximum((total[-1] - total[i]) / rest, 1e-300)
    lower = np.maximum((total[-1] - total[half]) / (rest - rest // 2), 1e-300)
    growth = (total[half] - total[i]) / (rest // 2) / lower
    chances = (1.0 + spacings[:tried] / below / rest) ** -rest
    real = scaled[:tried] > scaled[1:tried + 1] * (1 + 1e-9)
    return np.asarray(np.where(real, chances, 1.0)), np.asarray(growth), np.asarray(rest, dtype=np.float64)
