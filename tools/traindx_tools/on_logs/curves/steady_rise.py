"""A loss that creeps up: no jump and no spike, but higher from one stretch of the run to the next, up to its end.

Against record-to-record noise such a rise is small anywhere; over many records it is not. The run is cut into
stretches, each stands for its median, and from the best one on these are asked for a trend (Mann and Kendall: of all
pairs, how many rise), which no spike and no scale of the noise moves.
"""

from __future__ import annotations

import itertools

import numpy as np

from traindx_tools.on_logs.curves.outcomes import Rise
from traindx_tools.on_logs.curves.shapes import Track, noise
from traindx_tools.on_logs.run import Floats

STRETCHES, FEWEST = 24, 12
"""Stretches that a run is cut into, and those from the best one on that a trend is judged of: half the run."""
RECORDS = 5
"""Records of a stretch at least: a median of fewer is a record."""
RISING = 0.75
"""Share of pairs that rise less those that fall. By chance one series in 3,000 reaches it with 12 stretches, so
the rise must be large too."""
CLEAR = 6.0
"""The rise in standard deviations of the scatter between neighbours; a level that wanders rarely has more."""
OF_LEVEL, OF_GAIN = 0.1, 0.15
"""The rise as a share of the best level and of what had been gained before: less is a plateau that drifts."""


def steady_rise(t: Track, records: int = RECORDS) -> Rise | None:
    """The rise of a loss that creeps up to the end of the run; None where there is none, or it is too short to tell.

    Levels are medians of stretches of `records` values at least; `best_at` and `onset` are where the best one begins.
    """
    count = min(STRETCHES, len(t) // records)
    if count < FEWEST:
        return None
    edges = np.linspace(0, len(t), count + 1).astype(np.int64)
    levels = np.array([np.median(t.y[a:b]) for a, b in itertools.pairwise(edges.tolist())])
    k = int(np.argmin(levels))
    part = levels[k:]
    if len(part) < FEWEST:
        return None
    head, best, tail = float(levels[0]), float(part[0]), float(np.median(part[-2:]))
    rise = tail - best
    large = rise >= OF_LEVEL * abs(best) and rise >= OF_GAIN * (head - best)
    if not large or rise < CLEAR * noise(part) or rising_pairs(part) < RISING:
        return None
    return Rise(head, best, tail, int(edges[k]), int(edges[k]))


def rising_pairs(levels: Floats) -> float:
    """Kendall's tau of values against their order: 1 where all pairs rise, 0 without a trend."""
    above = np.sign(levels[None, :] - levels[:, None])
    pairs = len(levels) * (len(levels) - 1) / 2
    return float(np.triu(above, 1).sum() / pairs)
