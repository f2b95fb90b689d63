"""Pure numerics of learning curves: levels, noise, trends, and the constants that arithmetic predicts.

Everything here takes and gives plain arrays and numbers, is total (any float64 array of shape (n,), any n, no warning
leaves it) and bounded in time: trends are judged on at most 200 block means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.shapes import median_words
from traindx_tools.on_logs.run import Floats, Ints, Series

HUGE = 1e100
"""Values are clipped to +-HUGE: squares and sums of a million of them stay finite."""
TINY = 1e-30
"""Denominators are kept at least this far from zero."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The finite values of a series, in writing order.

    `values`: float64 of shape (m,), clipped to +-HUGE. `index`: int64 of shape (m,), where each stands in the series.
    """

    series: Series
    values: Floats
    index: Ints

    def __len__(self) -> int:
        return len(self.values)

    def where(self, start: int, end: int) -> tuple[int, int]:
        """Indices into the series of the finite values number `start` and `end`."""
        return int(self.index[start]), int(self.index[end])


def curve(series: Series) -> Curve:
    """The finite part of a series."""
    index = np.flatnonzero(np.isfinite(series.values))
    return Curve(series, np.clip(series.values[index], -HUGE, HUGE), index.astype(np.int64))


def ratio(a: float, b: float) -> float:
    """a / b with a denominator kept away from zero and the result within +-HUGE."""
    denominator = b if abs(b) > TINY else math.copysign(TINY, b)
    return float(np.clip(a / denominator, -HUGE, HUGE))


def median(values: Floats) -> float:
    """Median of shape (n,), NaN of nothing."""
    with np.errstate(over="ignore"):  # of two values whose sum no float holds
        return float(np.median(values)) if len(values) else math.nan


def head(values: Floats) -> float:
    """Level at the start: the median of the first tenth, of one value at least and ten at most."""
    return median(values[: min(10, max(1, len(values) // 10))])


def tail_count(n: int) -> int:
    """How many values count as the end of a curve of `n`: a quarter, three at least (where there are three)."""
    return min(n, max(3, n // 4))


def tail(values: Floats) -> float:
    """Level at the end: the median of the last quarter."""
    return median(values[len(values) - tail_count(len(values)):])


def beginning(c: Curve) -> str:
    """The level at the start as a person reads it: which records it is the median of, where the log holds no such value
    there."""
    return _level(c, 0, min(10, max(1, len(c) // 10)))


def ending(c: Curve) -> str:
    """The level at the end, in the same words."""
    return _level(c, len(c) - tail_count(len(c)), len(c))


def _level(c: Curve, first: int, after: int) -> str:
    part = c.values[first:after]
    level = f"{median(part):.5g}"
    if len(part) < 2 or (all(f"{v:.5g}" == level for v in part[:3]) and float(np.ptp(part)) == 0):
        return level
    return f"{level} ({median_words(c.series, int(c.index[first]), int(c.index[after - 1]))})"


def last_part(values: Floats, share: float) -> Floats:
    """The last `share` of the values, three at least (where there are three)."""
    return values[len(values) - min(len(values), max(3, math.ceil(len(values) * share))):]


def noise(values: Floats) -> float:
    """Standard deviation of the scatter around a smooth course, robust against jumps.

    From second differences (sigma = 1.4826 median|d2| / sqrt 6), so that a steady slope counts as no noise; from first
    differences where fewer than five values are given.
    """
    if len(values) >= 5:
        return 1.4826 * median(np.abs(np.diff(values, n=2))) / math.sqrt(6.0)
    if len(values) >= 3:
        steps = np.diff(values)
        return 1.4826 * median(np.abs(steps - np.median(steps))) / math.sqrt(2.0)
    return 0.0


def spread(values: Floats) -> float:
    """Maximum minus minimum, 0 of nothing."""
    return float(values.max() - values.min()) if len(values) else 0.0


def drop(values: Floats) -> float:
    """How far the curve came down from its first level to its last, as a share of the first; negative where it rose."""
    return ratio(head(values) - tail(values), abs(head(values))) if len(values) else 0.0


def block_means(values: Floats, blocks: int) -> Floats:
    """Means of at most `blocks` consecutive parts of equal size."""
    if len(values) <= blocks:
        return values
    return np.array([part.mean() for part in np.array_split(values, blocks)])


def trend(values: Floats) -> float:
    """Mann-Kendall z score of a monotone trend: beyond +-2 it is unlikely to be chance; 0 for fewer than four values.

    Source: Mann 1945, Kendall 1975; variance n(n-1)(2n+5)/18, ties left uncorrected (which only makes |z| smaller).
    """
    v = block_means(values, 200)
    n = len(v)
    if n < 4:
        return 0.0
    s = float(np.sign(v[None, :] - v[:, None])[np.triu_indices(n, 1)].sum())
    return (s - math.copysign(1.0, s)) / math.sqrt(n * (n - 1) * (2 * n + 5) / 18.0) if s else 0.0


def smooth(values: Floats) -> Floats:
    """Running median of three; the ends stay as they are. Shape (n,) in and out."""
    if len(values) < 3:
        return values
    middle = np.median(np.stack([values[:-2], values[1:-1], values[2:]]), axis=0)
    return np.concatenate([values[:1], middle, values[-1:]])


def constant(values: Floats) -> bool:
    """Whether all of two or more values are equal to the last printed digit."""
    return len(values) >= 2 and spread(values) == 0.0


def fraction(values: Floats) -> Floats:
    """Accuracies as 0..1, whether they were written as fractions or as per cent."""
    return values / 100.0 if len(values) and 1.5 < values.max() <= 100.0 else values


def uniform_guess(classes: float) -> float:
    """Cross entropy, in nats, of the same probability for each of `classes` classes: ln C."""
    return math.log(classes)


def double_softmax_floor(classes: float) -> float:
    """Lowest cross entropy over C classes when probabilities are fed as logits: -ln(e / (e + C - 1)).

    The best such "logits" are a one and C - 1 zeros; softmax gives the right class e / (e + C - 1).
    """
    return math.log(math.e + classes - 1.0) - 1.0


def calibrated_loss(accuracy: float, classes: float) -> float:
    """Highest cross entropy that a calibrated classifier of this accuracy has: the rest spread over the other classes.

    -a ln a - (1 - a) ln((1 - a) / (C - 1)), in nats.
    """
    a = min(max(accuracy, 1.0 / classes), 1.0)
    wrong = 0.0 if a >= 1.0 else -(1.0 - a) * math.log((1.0 - a) / (classes - 1.0))
    return -a * math.log(a) + wrong


def smoothed_floor(classes: float, smoothing: float) -> float:
    """Lowest cross entropy against labels smoothed by `smoothing` over C classes: the entropy of those labels."""
    other = smoothing / classes
    right = 1.0 - smoothing + other
    return -right * math.log(right) - (classes - 1.0) * other * math.log(other) if 0.0 < smoothing < 1.0 else 0.0
