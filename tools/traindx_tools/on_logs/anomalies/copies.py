"""Values that nothing computed anew: a stretch that stands still, and one that stood elsewhere already."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS, Anomaly, Kind
from traindx_tools.on_logs.curves.shapes import runs_of
from traindx_tools.on_logs.run import Floats, Ints

TIES = 0.2
"""Share of records equal to the one before from which a series is one of levels: then standing still says nothing."""
LONGEST = 2_000_000
_FACTOR, _ADDED = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
"""Of the linear congruential generator of Knuth's MMIX."""


def flat(y: Floats) -> Anomaly | None:
    """The longest stretch of one value, where chance repeats a value so seldom that nowhere it would be that long."""
    same = np.diff(y) == 0
    runs = list(runs_of(same))
    if not runs:
        return None
    start, end = max(runs, key=lambda r: r[1] - r[0])
    length = end - start + 1
    others = (int(same.sum()) - length + 1) / max(1, len(same) - length + 1)
    chance = len(y) * others**length
    if others > TIES or chance > FALSE_ALARMS or length < 4:
        return None
    return Anomaly(Kind.FLAT, start, end + 1, float(length + 1), chance)


def copied(y: Floats) -> Anomaly | None:
    """The longest stretch that repeats an earlier one digit for digit, longer than values meet by chance."""
    y = y[:LONGEST]
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    meet = float(((counts / len(y)) ** 2).sum()) - 1.0 / len(y)
    meet = max(meet, 1e-6)
    if meet > TIES:
        return None
    length = max(4, math.ceil(math.log(FALSE_ALARMS / len(y) ** 2) / math.log(meet)))
    if len(y) < 3 * length:
        return None
    first, again = _repeats(codes.astype(np.uint64), length)
    if not len(again):
        return None
    start = int(again[0])
    of = int(first[0])
    size = length
    while start + size < len(y) and of + size < start and codes[start + size] == codes[of + size]:
        size += 1
    return Anomaly(Kind.COPIED, start, start + size - 1, float(size), len(y) ** 2 * meet**size, of=of)


def _repeats(codes: NDArray[np.uint64], length: int) -> tuple[Ints, Ints]:
    """Where windows of `length` codes stood first and stand again, in order (hashes; overlapping ones left out)."""
    hashed = np.zeros(len(codes) - length + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for k in range(length):
            hashed = hashed * _FACTOR + codes[k: k + len(hashed)] + _ADDED
    _, where, inverse = np.unique(hashed, return_index=True, return_inverse=True)
    first = where[inverse]
    still = np.concatenate([[0], np.cumsum(np.diff(codes) == 0)])  # what stands still is another kind
    moves = still[length - 1:] == still[: len(hashed)]
    again = np.flatnonzero((first <= np.arange(len(hashed)) - length) & moves)
    return first[again], again
