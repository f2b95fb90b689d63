"""A value that is halved again and again: the loss scale of a scaler that meets overflow at every scale.

Only series of powers of two are looked at (scales and sizes are, metrics are not), so chance has no part in it. What is
halved in its first records and then stands is a scale that was guessed too large.
"""

from __future__ import annotations

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import Anomaly, Kind
from traindx_tools.on_logs.run import Floats

FEWEST = 8
"""Records of a series."""
HALVINGS = 5
"""Halvings without a doubling between, in all."""
STEADY = 5
"""Records before it; what is halved from the beginning on has to go on to the last record."""
FLOOR = 0.0
"""Power of two at which a loss scale does nothing any more: one that ends there never fitted."""
BACK = 2.0
"""Halvings that may be taken back later."""


def halved(y: Floats) -> Anomaly | None:
    """The last stretch in which a series of powers of two only falls, and from which it does not come back."""
    if len(y) < FEWEST or not bool((y > 0).all()):
        return None
    powers = np.log2(y)
    if bool((powers != np.round(powers)).any()):
        return None
    change = np.diff(powers)
    falls = np.flatnonzero(change < 0)
    bounds = [-1, *np.flatnonzero(change > 0).tolist(), len(change)]
    for before, after in zip(reversed(bounds[:-1]), reversed(bounds[1:]), strict=True):
        within = falls[(falls > before) & (falls < after)]
        if len(within) and powers[within[0]] - powers[within[-1] + 1] >= HALVINGS:
            return _anomaly(powers, int(within[0]), int(within[-1]) + 1)
    return None


def _anomaly(powers: Floats, start: int, end: int) -> Anomaly | None:
    lasts = end >= len(powers) - 2 or powers[end] <= FLOOR
    back = float(powers[end:].max() - powers[end])
    if back > BACK or (start < STEADY and not lasts):
        return None
    return Anomaly(Kind.HALVED, start, end, float(powers[start] - powers[end]), 0.0, up=False)
