"""Which values of a score are above its bound: a share is a fraction, or in per cent, and the values say which.

Where most values lie above 1 it is per cent. Where most lie below, it may still be: an error rate that has fallen to
0.4 per cent, an average precision that takes off from 0.3, batches of 256 of which 0 to 3 are right, accuracies that
stay at a chance of 1 in 200. All of these cross 1 by steps as they take elsewhere, or leave it for good and go on
rising, or come from above. So a value above 1 is impossible only where the series begins as a fraction that is far
from 0, jumps over 1 at once, much farther than it moves otherwise, and either comes back as abruptly or stands just
above 1 for long. What a hundredth of it would fit in with its neighbours is a percentage among fractions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.curves.metric_ranges import Range
from traindx_tools.on_logs.curves.shapes import runs_of
from traindx_tools.on_logs.run import Floats

BEFORE = 8
"""Fractions that come before the first value above 1."""
LONG = 30
"""Records before and behind a jump to just above 1 that lasts."""
MIDDLE, LEAST = 0.3, 0.15
"""What the median and the twentieth part of the fractions are at least: chances and rare events lie below."""
ABRUPT = 4.0
"""Times the largest move between two fractions, single ones apart."""
OVER = 0.1
"""What a jump is at least."""
JUST = 2.0
"""Up to which a score that lasts above 1 can be no percentage that has taken off."""
SHORT = 5
"""Records of a visit above 1 that comes back."""


def upper_bound(bound: Range, y: Floats) -> float:
    """The largest value that the definition allows: of a share 1 or 100, as its values say."""
    if not bound.share:
        return bound.high
    return 1.0 if above_one(y).any() else 100.0


def above_one(y: Floats) -> NDArray[np.bool_]:
    """Shape (n,): the values that a fraction cannot have; none where the series may be in per cent."""
    none = np.zeros(len(y), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        high = y > 1.0 + 1e-3
    inside = y[~high & np.isfinite(y)]
    if not high.any() or len(inside) < max(BEFORE, int(np.count_nonzero(high))) or not _is_fraction(inside):
        return none
    first = int(np.argmax(high))
    moves = np.abs(np.diff(y))[~high[1:] & ~high[:-1]]
    moves = moves[np.isfinite(moves)]
    if first < BEFORE or len(moves) < BEFORE - 1:
        return none
    least = max(OVER, ABRUPT * float(np.quantile(moves, 0.98)))
    visits = list(runs_of(high))
    if len(visits) > 1 and visits[-1][1] == len(y) - 1:
        visits.pop()  # whether it comes back is not known
    if all(_impossible(y, start, end, least) for start, end in visits):
        return np.asarray(high)
    return none


def _is_fraction(inside: Floats) -> bool:
    return float(np.median(inside)) >= MIDDLE and float(np.quantile(inside, 0.05)) >= LEAST


def _impossible(y: Floats, start: int, end: int, least: float) -> bool:
    """Whether a visit above 1 begins with a jump, and ends with one or lasts just above."""
    before, off = float(y[start - 1]), y[start: end + 1]
    if not float(y[start]) - before >= least or abs(float(np.median(off)) / 100 - before) <= max(0.1 * before, 0.02):
        return False
    lasting = start >= LONG and float(off.max()) <= JUST
    if end + 1 < len(y) and (end - start < SHORT or lasting):
        return bool(float(y[end]) - float(y[end + 1]) >= least)
    return lasting and end - start + 1 >= LONG
