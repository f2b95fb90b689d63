"""A metric at the end of a run or of a part of it: its level, and how much one record of it scatters.

The level is the mean of the last fifth of the records. What a single record scatters comes from the differences of
neighbours, which a trend does not enter. One arithmetic for experiments and for the verification of fixes.

What counts as the spread of runs is the largest of three:
- between runs of the control, the one-sided 5 % point of Student's t times their standard deviation (two or more runs
  that differ; two that are bit for bit the same have none);
- within a run, twice the noise of one record;
- 5 % of the level: a metric that was logged once has no spread of its own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.experiments.student import two_sided
from traindx_tools.on_logs.curves.shapes import LARGEST

LAST_SHARE = 0.2
"""Of the records, for the level at the end of a run."""
FEWEST_IN_LEVEL = 3
TIMES_NOISE = 2.0
"""Of one record's noise: about 95 % of the records lie within."""
FLOOR = 0.05
"""Share of the level below which two runs are not told apart."""
_SCALE_MAD = 1.4826
"""From the median absolute deviation to the standard deviation of a normal distribution."""


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
    bounded = np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), values)
    finite = bounded[np.isfinite(bounded)]
    last = bounded[-in_level(len(values)):]
    window = last[np.isfinite(last)]
    value = float(window.mean()) if np.isfinite(values[-1]) else float(values[-1])
    steps = np.abs(np.diff(finite[-max(len(finite) // 2, FEWEST_IN_LEVEL + 1):]))
    noise = _SCALE_MAD * float(np.median(steps)) / math.sqrt(2) if len(steps) >= FEWEST_IN_LEVEL else 0.0
    extent = float(finite.max() - finite.min()) if len(finite) else 0.0
    return Level(value, noise, len(values), extent, len(finite) == len(values), mark_of(values))


def in_level(count: int) -> int:
    """How many of `count` records the level is the mean of."""
    return max(math.ceil(count * LAST_SHARE), FEWEST_IN_LEVEL)


def mark_of(values: NDArray[np.float64]) -> str:
    """A hash of the records, equal where they agree bit for bit."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def spread(before: Sequence[Level], after: Sequence[Level]) -> float:
    """How far two levels may lie apart without anything having changed; see the module."""
    values = [b.value for b in before]
    between = 0.0
    if len(values) > 1:
        student = two_sided(0.1, len(values) - 1)
        between = student * stdev(values) * math.sqrt(1 / len(before) + 1 / max(len(after), 1))
    within = TIMES_NOISE * max(lv.noise for lv in (*before, *after))
    return max(between, within, FLOOR * abs(fmean(values)))
