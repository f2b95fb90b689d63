"""Did the promised metric move? The new run against runs of the unfixed code, and both against the spread.

The level of a metric in a run is the mean of its last fifth. What counts as the spread is the largest of three:
- between runs of the unfixed code, the one-sided 5 % point of Student's t times their standard deviation (two or more
  runs that differ; two that are bit for bit the same have none);
- within a run, twice the noise of one record, from the differences of neighbours, which a trend does not enter;
- 5 % of the level: a metric that was logged once has no spread of its own.
A level that moved less may be the dice, and then the effect was not shown.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traindx.promised import Promise

LAST_SHARE = 0.2
"""Of the records, for the level at the end of a run."""
FEWEST_IN_LEVEL = 3
TIMES_NOISE = 2.0
"""Of one record's noise: about 95 % of the records lie within."""
FLOOR = 0.05
"""Share of the level below which two runs are not told apart."""
STUDENT_T = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83)
"""One-sided 5 % points for 1 to 9 degrees of freedom; Student (1908), as in any table."""
_SCALE_MAD = 1.4826
"""From the median absolute deviation to the standard deviation of a normal distribution."""

NOT_SHOWN = "the command does not show the fault on the unfixed code"
Outcome = Literal["moved", "within", "against", "same"]


@dataclass(frozen=True)
class Level:
    """A metric at the end of one run, and how much one record of it scatters."""

    value: float
    noise: float = 0.0
    count: int = 1
    extent: float = 0.0
    """Largest minus smallest finite record."""
    finite: bool = True
    """Whether every record is."""
    mark: str = ""
    """A hash of all records: two runs with the same one agree bit for bit."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN and infinities as text."""
        return {**asdict(self), "value": str(self.value), "noise": str(self.noise), "extent": str(self.extent)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Level:
        """The inverse of `to_json`."""
        return cls(**{**data, **{k: float(data[k]) for k in ("value", "noise", "extent")}})


def level_of(values: NDArray[np.float64]) -> Level:
    """The level of a series: `values` of shape (n,), n >= 1, in the order in which they were logged."""
    finite = values[np.isfinite(values)]
    last = values[-max(math.ceil(len(values) * LAST_SHARE), FEWEST_IN_LEVEL):]
    window = last[np.isfinite(last)]
    value = float(window.mean()) if np.isfinite(values[-1]) else float(values[-1])
    steps = np.abs(np.diff(finite[-max(len(finite) // 2, FEWEST_IN_LEVEL + 1):]))
    noise = _SCALE_MAD * float(np.median(steps)) / math.sqrt(2) if len(steps) >= FEWEST_IN_LEVEL else 0.0
    extent = float(finite.max() - finite.min()) if len(finite) else 0.0
    mark = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
    return Level(value, noise, len(values), extent, len(finite) == len(values), mark)


@dataclass(frozen=True)
class Moved:
    """What became of one promise."""

    promise: Promise
    series: str
    outcome: Outcome
    said: str


def spread(before: Sequence[Level], after: Sequence[Level]) -> float:
    """How far two levels may lie apart without anything having changed; see the module."""
    values = [b.value for b in before]
    between = 0.0
    if len(values) > 1:
        student = STUDENT_T[min(len(values) - 1, len(STUDENT_T)) - 1]
        between = student * stdev(values) * math.sqrt(1 / len(before) + 1 / max(len(after), 1))
    within = TIMES_NOISE * max(lv.noise for lv in (*before, *after))
    return max(between, within, FLOOR * abs(fmean(values)))


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
