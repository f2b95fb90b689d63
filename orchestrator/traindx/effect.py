"""Did the promised metric move? The new run against runs of the unfixed code, and both against the spread.

Levels and their spread are those of experiments (`traindx_tools.experiments.level`). A level that moved less than the
spread may be the dice, and then the effect was not shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from traindx.promised import Promise
from traindx_tools.experiments.level import Level, level_of, spread

__all__ = ["NOT_SHOWN", "Level", "Moved", "Outcome", "compared", "level_of", "spread"]

NOT_SHOWN = "the command does not show the fault on the unfixed code"
Outcome = Literal["moved", "within", "against", "same"]


@dataclass(frozen=True)
class Moved:
    """What became of one promise."""

    promise: Promise
    series: str
    outcome: Outcome
    said: str


def compared(promise: Promise, before: Sequence[Mapping[str, Level]], after: Sequence[Mapping[str, Level]]
             ) -> Moved | None:
    """What the runs say of a promise; None where it was not measured in all of them."""
    name = _series(promise, (*before, *after))
    if name is None or not before or not after:
        return None
    old, new = [b[name] for b in before], [a[name] for a in after]
    outcome, why = _judged(promise, old, new)
    return Moved(promise, name, outcome, f"{name}, which {_should(promise)}, {why}")


def _should(promise: Promise) -> str:
    return {"down": "should go down", "up": "should go up", "finite": "should be finite",
            "moves": "should move"}[promise.way]


def _series(promise: Promise, runs: Sequence[Mapping[str, Level]]) -> str | None:
    """The series that a promise is about, in all runs; without a group that of training, else a held-out one."""
    groups = [promise.group] if promise.group else ["", "validation", "test"]
    names = [f"{g} {promise.metric}".strip() for g in groups]
    return next((n for n in names if runs and all(n in r for r in runs)), None)


def _judged(promise: Promise, old: Sequence[Level], new: Sequence[Level]) -> tuple[Outcome, str]:
    if promise.way == "finite" and all(_finite(lv) for lv in (*old, *new)):
        return "within", f"was finite before as well: {NOT_SHOWN}"
    if len({lv.mark for lv in (*old, *new)}) == 1 and old[0].mark:
        return "same", f"is the same in every one of {old[0].count} records ({_number(old[0].value)})"
    if not all(_finite(lv) for lv in old):
        good = all(_finite(lv) for lv in new)
        return ("moved" if good else "within"), f"was not finite and {'is now' if good else 'is not yet'}"
    if not all(_finite(lv) for lv in new):
        return "against", "was finite and is not any more"
    if promise.way == "moves":
        stood, moves = max(lv.extent for lv in old) == 0, min(lv.extent for lv in new) > 0
        return ("moved", "stood still and moves now") if stood and moves else ("within", "moved before as well")
    return _by_level(promise, old, new)


def _by_level(promise: Promise, old: Sequence[Level], new: Sequence[Level]) -> tuple[Outcome, str]:
    before, now, margin = fmean(lv.value for lv in old), fmean(lv.value for lv in new), spread(old, new)
    told = f"went from {_number(before)} to {_number(now)}"
    if abs(now - before) <= margin:
        return "within", f"{told}: within the spread of {_number(margin)}"
    right = (now < before) == (promise.way == "down")
    return ("moved" if right else "against"), f"{told}: beyond the spread of {_number(margin)}" + (
        "" if right else ", the other way")


def _finite(level: Level) -> bool:
    return level.finite and math.isfinite(level.value)


def _number(value: float) -> str:
    return f"{value:.4g}"
