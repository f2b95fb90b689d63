"""Breaks: where a series leaves its level within a few records, by far more than it ever moves otherwise.

`steps.py` compares means of long windows and takes the bound on false alarms from their tail; that needs hundreds of
records and some scatter. A break is seen in a short series and in one that only stands still and changes (a learning
rate, a setting): the records in which it moves one way are put together, and the move has to be `CLEAR` times what
the records before scatter and `ALONE` times every other move of the series but the few largest. A series that
wanders, one that saws at every epoch and a smooth schedule have many moves alike, so they have no break: of 50,000
series (white, autoregressive, random-walk, Student, Cauchy, lognormal, falling, cosine, cyclic, teeth; 20 to 5,000
records) 2 had one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.shapes import noise
from traindx_tools.on_logs.run import Floats

FEWEST = 12
"""Records of a series."""
BEFORE, AFTER = 8, 8
"""Records whose median is the level before and after."""
STEADY = 5
"""Records that are there before a break at least: what begins with a climb is a warm-up."""
FOLLOWED = 2
"""Records after it that show where it went, but before values that are not finite."""
EVEN = 0.15
"""Of the largest distance, by which distances that are even may differ."""
LONGEST = 8
"""Records within which it has moved."""
CLEAR = 8.0
"""Times the scatter of the records before: by chance never in a log of any length."""
ALONE = 3.0
"""Times the largest other move."""
MOST = 4
"""Breaks of a series; what moves so more often does so by nature."""
MOVES = 4.0
"""Times the usual difference of two records from which a record moves."""
WIDE = 10.0
"""Ratio of the 99th to the 1st percentile of positive values from which their logarithms are judged."""
LEAST = 0.05
"""Of the level before: a smaller move of a series without scatter is the last digit."""


@dataclass(frozen=True)
class Break:
    """`start`: the first record off the level before; `end`: the last that moves. `before`, `after`: levels.

    `size`: the move in units of the scatter before it. `stays`: whether what follows is a level of its own.
    """

    start: int
    end: int
    before: float
    after: float
    size: float
    stays: bool

    @property
    def up(self) -> bool:
        """Which way it goes."""
        return self.after > self.before


def breaks(y: Floats, *, cut: bool = False) -> tuple[Break, ...]:
    """The breaks of finite values, in order; at most `MOST`. `cut`: values that are not finite follow.

    Breaks at even distances (teeth, restarts of a schedule, levels in turn) are none.
    """
    if len(y) < FEWEST:
        return ()
    with np.errstate(all="ignore"):
        low, high = np.quantile(y, [0.01, 0.99])
        judged = np.log(y) if bool((y > 0).all()) and high > WIDE * low else y
        differences = np.diff(judged)
        moves = _moves(differences)
        still = np.ones(len(differences), dtype=bool)
        for s, e in moves:
            still[s - 1: e] = False
        usual = float(np.abs(differences[still]).max()) if still.any() else 0.0
        sizes = np.array([abs(float(judged[e] - judged[s - 1])) for s, e in moves])
        order = np.argsort(-sizes, kind="stable")
        ranked = np.maximum(np.append(sizes[order], 0.0), usual)
        apart = [k for k in range(1, min(MOST, len(moves)) + 1) if ranked[k - 1] >= ALONE * ranked[k]]
        chosen = sorted(moves[i] for i in order[: max(apart, default=0)])
        starts = [s for s, _ in chosen]
        ups = [s for s, e in chosen if judged[e] > judged[s - 1]]
        if _even(ups) or _even([s for s in starts if s not in ups]) or (len(starts) > 2 and _even(starts)):
            return ()
        chosen = [(s, e) for s, e in chosen if cut or e + FOLLOWED < len(y)]
        return tuple(found for s, e in chosen if (found := _break(y, judged, s, e)) is not None)


def _even(starts: list[int]) -> bool:
    """Whether each of two and more stands as far from the one before as the first from the beginning, about."""
    apart = np.diff([0, *starts])
    return len(starts) > 1 and float(np.ptp(apart)) <= EVEN * float(apart.max())


def _moves(differences: Floats) -> list[tuple[int, int]]:
    """First and last record of each stretch that moves one way by more than usual."""
    usual = 1.4826 * float(np.median(np.abs(differences)))
    moving = np.where(np.abs(differences) > MOVES * usual, np.sign(differences), 0.0)
    edges = np.flatnonzero(np.diff(moving, prepend=0.0, append=0.0))
    stretches = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [(a + 1, b) for a, b in stretches if moving[a] != 0.0]


def _break(y: Floats, judged: Floats, start: int, end: int) -> Break | None:
    if start < STEADY or end - start >= LONGEST:
        return None
    earlier, later = judged[max(0, start - 3 * BEFORE): start], judged[end: end + AFTER]
    level, new = float(np.median(earlier[-BEFORE:])), float(np.median(later))
    moved = abs(new - level)
    spread = max(noise(earlier), float(np.subtract(*np.quantile(earlier[-BEFORE:], [0.9, 0.1]))) / 2.56)
    floor = 1e-3 * max(abs(level), 1e-12)
    trend = abs(float(np.median(earlier[-3:])) - float(np.median(earlier[-BEFORE:][:3])))
    if moved < CLEAR * spread or moved < 2 * trend or np.sign(new - level) != np.sign(judged[end] - judged[start - 1]):
        return None
    if spread <= floor and moved < LEAST * max(abs(level), 1e-12):
        return None
    left = judged[end:]
    stays = len(later) >= AFTER and float(np.ptp(later)) <= 0.5 * moved and bool(
        (np.sign(np.quantile(left, [0.1, 0.9]) - level) == np.sign(new - level)).all())
    return Break(start, end, float(np.median(y[max(0, start - BEFORE): start])), float(np.median(y[end: end + AFTER])),
                 moved / max(spread, floor), stays)

