"""Slow courses: a drift from beginning to end, and what repeats with a period."""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS, Anomaly, Kind
from traindx_tools.on_logs.anomalies.combs import comb
from traindx_tools.on_logs.curves.baselines import block_means
from traindx_tools.on_logs.curves.shapes import noise
from traindx_tools.on_logs.run import Floats

BLOCKS = 60
LIMIT = 3.5
"""Student's t of 59 increments that chance exceeds in `FALSE_ALARMS` of all series."""
LEAST = 4.0
"""Times the scatter of single records that a straight course changes by at least."""
SURE = 15.0
"""Standard errors of the slope: a walk under noise has a slope as well, which its own error does not know."""
FOLLOWS = 0.15
"""Correlation of neighbouring block means up to which they are noise around a line."""
NARROW = 40
"""Frequencies whose median is the level beside a peak of the periodogram."""
LOWEST = 4
"""Periods that the series holds at least: fewer are a course and no oscillation."""
SMEARED = 2.5
"""By what a median of so few frequencies and a window over the records widen the exponential."""
REFINEMENTS = 4
"""Rounds in which the frequency is narrowed, to an eighth each."""
LONGEST = 65536
"""Records of which a period is sought; of a longer series the first."""


def drift(y: Floats) -> Anomaly | None:
    """A mean increment between block means that increments about 0 do not have.

    Student's t of the increments: exact for a random walk, and far below its limit for noise around a level, whose
    increments cancel. The limit for `FALSE_ALARMS` and 59 increments is 3.5; twice that is asked for, as increments of
    heavy tails are few. Noise hides a course in its increments: where none is found, a line through the means is asked.
    """
    steps = np.diff(block_means(y, BLOCKS))
    if len(steps) < BLOCKS // 2:
        return None
    spread = float(steps.std(ddof=1))
    t = float(steps.mean()) / spread * math.sqrt(len(steps)) if spread > 0 else 0.0
    t, change = (t, float(steps.sum())) if abs(t) >= 2 * LIMIT else _around_a_line(y)
    if abs(t) < 2 * LIMIT:
        return None
    return Anomaly(Kind.DRIFT, 0, len(y) - 1, abs(change), _normal_tail(abs(t)), t > 0)


def _around_a_line(y: Floats) -> tuple[float, float]:
    """Student's t and the whole change of a straight course with noise around it; 0 where it is none.

    Noise around a line has block means that do not follow each other; those of a random walk, and of a curve, do, and
    are not asked. What is left of that enters as in a series of first order, by the upper end of its range. Nothing is
    said of a change below `LEAST` scatters of single records, and a course has to be one in its halves as well.
    """
    means = block_means(y, BLOCKS)
    x = np.arange(len(means)) - (len(means) - 1) / 2
    slope = float(x @ means / (x @ x))
    rest = means - means.mean() - slope * x
    size, change = float(rest @ rest), slope * len(means)
    if size <= 0 or abs(change) < LEAST * noise(y):
        return 0.0, 0.0
    follows = float(rest[1:] @ rest[:-1]) / size
    if follows > FOLLOWS:
        return 0.0, 0.0
    upper = min(0.9, max(follows, 0.0) + 2 / math.sqrt(len(means)))
    error = math.sqrt(size / (len(means) - 2) / float(x @ x) * (1 + upper) / (1 - upper))
    half = len(means) // 2
    ways = [float(np.polyfit(x[:half], part, 1)[0]) for part in (means[:half], means[-half:])]
    one_way = min(w * np.sign(slope) for w in ways) > 0.5 * abs(slope)
    return (slope / error, change) if one_way and abs(slope) >= SURE * error else (0.0, 0.0)


def _normal_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2))


def oscillation(y: Floats) -> Anomaly | None:
    """A line in the periodogram far above its neighbours.

    Of ranks, so that tails play no part; over the median of the frequencies beside it, so that the colour of the noise
    does not. Such a ratio is exponential, and the largest of m exceeds log(m / p) with chance p (Fisher 1929). Where
    there is no line, spikes at even distances (see `combs.py`).
    """
    found = _line(y[:LONGEST])
    if found is not None:
        return found
    spiked = comb(y)
    return None if spiked is None else Anomaly(Kind.OSCILLATION, 0, len(y) - 1, *spiked)


def _line(y: Floats) -> Anomaly | None:
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
    return Anomaly(Kind.OSCILLATION, 0, len(y) - 1, _refined(ranks, len(x) / (at + 1)), chance)


def _refined(ranks: Floats, period: float) -> float:
    """The period between two frequencies of the periodogram, by the phases over the whole length.

    Of a series of n records a frequency is known to 1/n by its bin, and to a small part of that by the sine that fits
    best: the power at frequencies between the bins beside is taken, finer and finer. Where the fit is at an edge, the
    line has no one frequency, and the bin is what is known. A whole number of records is told where it fits as well.
    """
    rest = ranks - _course_of(ranks, period)
    rest = (rest - rest.mean()) * np.hanning(len(rest))
    n = len(rest)
    low, high = 1 / period - 1.0 / n, 1 / period + 1.0 / n
    for _ in range(REFINEMENTS):
        tried = np.linspace(low, high, 17)
        best = int(np.argmax([_power(rest, f) for f in tried]))
        if best in (0, len(tried) - 1):
            return period
        low, high = float(tried[best - 1]), float(tried[best + 1])
    found = 2 / (low + high)
    whole = float(round(found))
    near = abs(whole - found) < found**2 / (8 * n) and _power(rest, 1 / whole) > 0.98 * _power(rest, 1 / found)
    return whole if near else found


def _power(values: Floats, frequency: float) -> float:
    return float(abs(np.exp(-2j * np.pi * frequency * np.arange(len(values))) @ values) ** 2)


def _course_of(values: Floats, period: float) -> Floats:
    """The running mean over two periods: a trend has power at all low frequencies."""
    width = min(len(values), max(3, 2 * round(period)))
    padded = np.pad(values, (width // 2, width - 1 - width // 2), mode="reflect" if width < len(values) else "edge")
    sums = np.cumsum(np.insert(padded, 0, 0.0))
    return np.asarray((sums[width:] - sums[:-width]) / width)
