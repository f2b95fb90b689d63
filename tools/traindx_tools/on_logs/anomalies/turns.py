"""Turns: where a series leaves its level at once and scatters more from there on than it did before.

What comes behind such a place moves as much as the place itself, so that neither means of windows (`steps.py`) nor the
largest move of all (`breaks.py`) show it. Here a move is compared with what came before it alone: it is `ALONE` times
every earlier one, and nearly all of the records behind it lie beyond everything that the records before it reached.
Noise comes back from a jump, however heavy its tail, a walk has no jump, and a schedule has no scatter before it: of
57,000 series (white, autoregressive, random-walk, Student, Cauchy, lognormal, falling, cosine, cyclic, teeth, noise
whose scatter grows or jumps; 40 to 5,000 records) none had one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.on_logs.anomalies.breaks import Break
from traindx_tools.on_logs.run import Floats

BEFORE, AFTER = 30, 30
"""Records on both sides that are compared."""
FEWEST_AFTER = 12
"""Records behind a turn, at least."""
WITHIN = (1, 2, 4)
"""Records within which it moves."""
ALONE = 3.0
"""Times the largest earlier move within as many records."""
CLEAR = 8.0
"""Times the scatter before, by which the levels differ."""
NOISIER = 4.0
"""Times the scatter before that there is behind: else it is a break or a level shift."""
LEAST = 1e-6
"""Of the level before: what scatters less is a setting."""
ALIKE = 0.25
"""Share of the records before that have one value, from which its scatter says little (rewards that are mostly 0)."""
BEYOND = 0.9
"""Share of the records behind it that lie beyond all of those before."""
MOST = 4
"""Turns of a series."""


def turns(y: Floats) -> Iterator[Break]:
    """The turns of finite values, in order; at most `MOST`."""
    found, last = 0, -BEFORE
    for at in _jumps(y).tolist():
        if at - last >= BEFORE and (one := _turn(y, at)) is not None:
            found, last = found + 1, at
            yield one
            if found == MOST:
                return


def _jumps(y: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The records at which a move ends that is larger than every one before."""
    found = np.zeros(len(y), np.bool_)
    for within in WITHIN:
        moves = np.abs(y[within:] - y[:-within])
        if len(moves) <= within:
            continue
        before = np.maximum.accumulate(moves)[:-within]  # of moves that end where this one begins, or before
        larger = moves[within:] >= ALONE * before
        found[2 * within:] |= larger & (moves[within:] > 0)
    found[:BEFORE], found[len(y) - FEWEST_AFTER + 1:] = False, False
    return np.flatnonzero(found)


def _turn(y: Floats, at: int) -> Break | None:
    """The turn that has come to its end at a record."""
    start = next((at - k + 1 for k in WITHIN if _is_at_rest(y, at - k)), at)
    earlier, later = y[max(0, start - BEFORE): start], y[at: at + AFTER]
    if len(earlier) < BEFORE or len(later) < FEWEST_AFTER:
        return None
    level, new = float(np.median(earlier)), float(np.median(later))
    spread, noise = max(_spread(earlier), _noise(earlier)), _noise(earlier)
    if noise <= LEAST * abs(level) or _noise(later) < NOISIER * noise or abs(new - level) < CLEAR * spread:
        return None
    if np.unique(earlier, return_counts=True)[1].max() > ALIKE * len(earlier):
        return None
    low, high = float(earlier.min()) - spread, float(earlier.max()) + spread
    beyond = later > high if new > level else later < low
    if np.count_nonzero(beyond) < BEYOND * len(later):
        return None
    return Break(start, at, level, new, abs(new - level) / spread, stays=True)


def _is_at_rest(y: Floats, at: int) -> bool:
    """Whether a record lies within the reach of the records before it: a move begins behind it."""
    earlier = y[max(0, at - BEFORE): at]
    return len(earlier) > 0 and float(earlier.min()) <= y[at] <= float(earlier.max())


def _noise(values: Floats) -> float:
    """Scatter from one record to the next: a smooth course has little."""
    steps = np.diff(values)
    return 1.0484 * float(np.median(np.abs(steps - np.median(steps))))  # of normal noise its standard deviation


def _spread(values: Floats) -> float:
    """Scatter of values around a line through their halves."""
    half = len(values) // 2
    slope = (float(np.median(values[half:])) - float(np.median(values[:half]))) / max(1, len(values) - half)
    rest = values - slope * np.arange(len(values))
    return 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
