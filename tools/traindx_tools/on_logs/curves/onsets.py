"""Where a change begins: a change point against the scatter of what came before, never the lowest value by chance.

Pure functions on the values of a track.
"""

from __future__ import annotations

import numpy as np

from traindx_tools.on_logs.curves.shapes import noise, running_median
from traindx_tools.on_logs.run import Floats

SIGMAS = 3.0
"""Standard deviations of the record-to-record noise within which a value counts as the level before: one in 370 by
chance for one comparison of normal noise."""
FEWEST = 8
"""Records below which a level has no scatter of its own: the lowest one is where the rise begins."""
SHARP = 0.5
"""Of the scatter about a straight line that is left about two levels, below which a change is a step: a straight line
cut in two leaves more than the line does."""


def rise_begins(y: Floats, high: int) -> int:
    """Index of the last value before `high` that lies within the scatter of the lowest level before it.

    `y`: shape (n,), finite. The level is the lowest running median up to `high`, the scatter the noise of the records
    up to that level: a rise would blow up its own yardstick.
    """
    before = y[: high + 1]
    if len(before) < FEWEST:
        return int(np.argmin(before))
    level = running_median(before, max(3, len(before) // 20) | 1)
    lowest = int(np.argmin(level))
    quiet = y[max(0, lowest - 50): lowest + 1]
    scatter = noise(quiet) if len(quiet) >= FEWEST else noise(before)
    within = np.flatnonzero(before[:high] <= max(level[lowest] + SIGMAS * scatter, float(before[:high].min())))
    return int(within[-1]) if len(within) else int(np.argmin(before))


def step_at(y: Floats) -> int | None:
    """Index of the first value of a second level where `y`, shape (n,), is two levels rather than a course.

    None where a straight line fits as well as two levels, or either level has fewer than three records.
    """
    n = len(y)
    if n < 6:
        return None
    cut = np.arange(3, n - 2)
    total, square = np.cumsum(y), np.cumsum(y * y)
    left, right = total[cut - 1], total[-1] - total[cut - 1]
    rest = square[-1] - left**2 / cut - right**2 / (n - cut)
    x = np.arange(n) - (n - 1) / 2
    centred = y - y.mean()
    line = float(centred @ centred - (x @ centred) ** 2 / (x @ x))
    best = int(np.argmin(rest))
    return int(cut[best]) if line > 0 and float(rest[best]) < SHARP * line else None
