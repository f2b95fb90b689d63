"""Slow courses: a drift from beginning to end, and what repeats with a period."""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS, Anomaly, Kind
from traindx_tools.on_logs.curves.baselines import block_means
from traindx_tools.on_logs.run import Floats

BLOCKS = 60
NARROW = 40
"""Frequencies whose median is the level beside a peak of the periodogram."""
LOWEST = 4
"""Periods that the series holds at least: fewer are a course and no oscillation."""
SMEARED = 2.5
"""By what a median of so few frequencies and a window over the records widen the exponential."""
LONGEST = 65536
"""Records of which a period is sought; of a longer series the first."""


def drift(y: Floats) -> Anomaly | None:
    """A mean increment between block means that increments about 0 do not have.

    Student's t of the increments: exact for a random walk, and far below its limit for noise around a level, whose
    increments cancel. The limit for `FALSE_ALARMS` and 59 increments is 3.5; twice that is asked for, as increments of
    heavy tails are few.
    """
    steps = np.diff(block_means(y, BLOCKS))
    if len(steps) < BLOCKS // 2:
        return None
    spread = float(steps.std(ddof=1))
    t = float(steps.mean()) / spread * math.sqrt(len(steps)) if spread > 0 else 0.0
    if abs(t) < 2 * 3.5:
        return None
    return Anomaly(Kind.DRIFT, 0, len(y) - 1, abs(float(steps.sum())), _normal_tail(abs(t)), t > 0)


def _normal_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2))


def oscillation(y: Floats) -> Anomaly | None:
    """A line in the periodogram far above its neighbours.

    Of ranks, so that tails play no part; over the median of the frequencies beside it, so that the colour of the noise
    does not. Such a ratio is exponential, and the largest of m exceeds log(m / p) with chance p (Fisher 1929).
    """
    y = y[:LONGEST]
    ranks = np.argsort(np.argsort(y, kind="stable"), kind="stable").astype(np.float64)
    x = np.diff(ranks)
    x = (x - x.mean()) * np.hanning(len(x))
    power = np.abs(np.fft.rfft(x))[1:] ** 2
    if len(power) < 3 * NARROW:
        return None
    padded = np.pad(power, NARROW // 2, mode="reflect")
    beside = np.median(np.lib.stride_tricks.sliding_window_view(padded, NARROW + 1), axis=1) / math.log(2)
    ratio = power / np.maximum(beside, 1e-300)
    ratio[:LOWEST] = 0.0
    at = int(ratio.argmax())
    chance = min(1.0, len(power) * math.exp(-float(ratio[at]) / SMEARED))
    if chance > FALSE_ALARMS:
        return None
    return Anomaly(Kind.OSCILLATION, 0, len(y) - 1, len(x) / (at + 1), chance)
