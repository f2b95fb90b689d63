"""Values that leave their surroundings and come back, judged by the tail that the others form (see `tails.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS, Anomaly, Kind
from traindx_tools.on_logs.anomalies.scatter import BLOCK, Scatter, episodes, scatter_of
from traindx_tools.on_logs.anomalies.tails import outlying
from traindx_tools.on_logs.run import Floats

APART = 3
"""Records between two spikes; what is nearer is one."""
LEAST = 4.0
"""Times the scatter that a spike reaches at least: what is less is no anomaly, however sure the gap is."""
WIDE = 10.0
"""Ratio of the 99th to the 1st percentile of positive values from which their logarithms are judged."""
TAIL = 60
"""Peaks that are looked at, and four times the root of the records beside: the tail, not the body."""


def spikes(y: Floats) -> Iterator[Anomaly]:
    """Every spike, up and down; each side has half of the false alarms."""
    found = scatter_of(_scaled(y))
    if found is None:
        return
    for up in (True, False):
        yield from _one_side(found, up)


def _scaled(y: Floats) -> Floats:
    low, high = np.quantile(y, [0.01, 0.99])
    return np.log(y) if bool((y > 0).all()) and high > WIDE * low else y


def _one_side(found: Scatter, up: bool) -> Iterator[Anomaly]:
    edge = min(BLOCK, len(found.rest) // 20)
    rest = (found.rest if up else -found.rest).copy()
    rest[:edge] = 0.0  # the first steep descent is no spike
    rest[len(rest) - 1:] = 0.0
    usual = max(1.0, float(np.quantile(rest, 0.8)))
    starts, ends, peaks = episodes(rest, usual, APART)
    gap = outlying(peaks, TAIL + int(4 * len(rest) ** 0.5))
    if gap is None or gap.chance > FALSE_ALARMS / 2:
        return
    level = max(gap.level, LEAST)
    for start, end, peak in zip(starts, ends, peaks, strict=True):
        if peak >= level and end < len(rest) - 2:
            high = np.flatnonzero(rest[int(start): int(end) + 1] >= max(usual, level / 2))
            yield Anomaly(Kind.SPIKE, int(start + high[0]), int(start + high[-1]), float(peak), gap.chance, up)
