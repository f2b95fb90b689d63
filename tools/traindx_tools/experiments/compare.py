"""Controls against runs with the change, looked at several times, so that all errors together stay below 5 %.

Numbers: Student's t (1908) with the common standard deviation of both arms, which without an effect are exchangeable.
Every look has its own share of what may be spent (as of Lan and DeMets 1983); the shares are added up (Bonferroni's
bound, which holds whatever the looks have in common). Two first looks are at a quarter and a half of the horizon: a
large effect ends a run there. What t does not cover is a run that ends in one of two basins, by chance: three controls
in one and the changed runs in the other look like a sure effect. So an effect is called only where that is rare
whatever the basins' chances p: for the better from 3 controls and 2 changed runs on (p^3 (1-p)^2, at most 3.5 %), for
the worse from 4 and 4 on (2 p^4 (1-p)^4, at most 0.8 %).

An effect is judged without a unit: by its distance in spreads of a run, and by its share of what is measured (how far a
loss falls is compared with how far the other arm's falls, and not with the whole loss). What is sure and still a small
share of it is neither an effect that could be the symptom nor none: it is told as what it is (`is_small`).

Events: a change removes an event where all of 3 controls and none of 2 changed runs show it, or later where 5 and 5
differ nearly as much (4 and none, 5 and at most one). Whatever the chance p that a run shows the event, that happens
without an effect in at most 3.9 % of experiments: the largest value over p of the exact sum over all outcomes of ten
runs (`tests/tools/experiments/test_compare.py` adds them up).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from traindx_tools.experiments.level import FLOOR, TIMES_NOISE
from traindx_tools.experiments.reading import Measured
from traindx_tools.experiments.student import two_sided

MARGIN = 2 * FLOOR
"""Share of the level below which an effect is none that could be the symptom."""


CLEAR = 3.0
"""Spreads of a run from which on two arms are never told to be alike."""

Way = Literal["better", "worse"]


@dataclass(frozen=True)
class Look:
    """After so many controls and changed runs the numbers are compared. `ways`: the effects that may be called then."""

    controls: int
    changes: int
    alpha: float
    ways: tuple[Way, ...] = ("better", "worse")
    early: float = 0.0004
    """Spent at each of the two early positions."""


LOOKS = (Look(3, 1, 0.004, ()), Look(3, 2, 0.008, ("better",)), Look(3, 3, 0.01, ("better",)), Look(4, 4, 0.008),
         Look(5, 5, 0.01))
"""In both ways together 0.027, and 0.0024 at the early positions. After (3, 1) only "no effect" may be said."""
EARLY = (0.25, 0.5)
"""Shares of the horizon."""
EVENT_LOOKS = ((3, 2), (5, 5))


@dataclass(frozen=True)
class Difference:
    """Mean of the changed runs minus mean of the controls."""

    value: float
    low: float
    high: float
    """Ends of the confidence interval at 1 - alpha of the look."""
    spread: float
    """Standard deviation of a run, 0 where no two differ."""
    floor: float
    """Below this two runs are not told apart."""
    margin: float

    @property
    def is_effect(self) -> bool:
        """Larger than what chance does, and than what is told apart at all."""
        return abs(self.value) > self.floor and (self.low > 0 or self.high < 0)

    @property
    def is_none(self) -> bool:
        """No effect that could be the symptom is compatible with what was measured."""
        return self._within and not self.is_effect and not self._clear

    @property
    def is_small(self) -> bool:
        """Surely there, and too little to be the symptom."""
        return self._within and not self.is_effect and self._clear and (self.low > 0 or self.high < 0)

    @property
    def distance(self) -> float:
        """In spreads of a run; infinite where no two runs of an arm differ and the arms do."""
        return abs(self.value) / self.spread if self.spread > 0 else math.inf if self.value else 0.0

    @property
    def _within(self) -> bool:
        return -self.margin < self.low and self.high < self.margin

    @property
    def _clear(self) -> bool:
        return self.spread > 0 and self.distance >= CLEAR


def difference(controls: Sequence[Measured], changes: Sequence[Measured], alpha: float) -> Difference:
    """Compares numbers of at least one control and one changed run, all finite."""
    old, new = [m.value for m in controls], [m.value for m in changes]
    value = fmean(new) - fmean(old)
    scale = fmean(m.scale for m in controls)
    least = FLOOR * min(scale, max(abs(fmean(old)), abs(fmean(new))))
    degrees = len(old) + len(new) - 2
    squares = sum((v - fmean(old)) ** 2 for v in old) + sum((v - fmean(new)) ** 2 for v in new)
    spread = math.sqrt(squares / degrees) if degrees > 0 else 0.0
    if spread == 0:  # nothing is drawn: what one record scatters is all the spread there is
        noise = TIMES_NOISE * max(m.noise for m in (*controls, *changes))
        floor = max(least, noise)
        return Difference(value, value - noise, value + noise, 0.0, floor, max(MARGIN * scale, noise))
    half = two_sided(alpha, degrees) * spread * math.sqrt(1 / len(old) + 1 / len(new))
    return Difference(value, value - half, value + half, spread, least, MARGIN * scale)


def apart(old: Measured, new: Measured) -> float:
    """From where on two single runs are told apart: a share of what they measure, and what their records scatter."""
    if not math.isfinite(old.value) or not math.isfinite(new.value):
        return 0.0
    size = min(old.scale, max(abs(old.value), abs(new.value)))
    return max(FLOOR * size, TIMES_NOISE * max(old.noise, new.noise))


def separated(shown: Sequence[bool], after: Sequence[bool]) -> bool:
    """Whether an event that controls show is gone with the change, at one of the looks (see the module)."""
    old, new = sum(shown), sum(after)
    if (len(shown), len(after)) == EVENT_LOOKS[0]:
        return old == len(shown) and new == 0
    return (len(shown), len(after)) == EVENT_LOOKS[1] and ((old >= 4 and new == 0) or (old == 5 and new <= 1))


def look_for(controls: int, changes: int) -> Look | None:
    """The look that is due after so many runs."""
    return next((k for k in LOOKS if (k.controls, k.changes) == (controls, changes)), None)
