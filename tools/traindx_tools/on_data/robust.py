"""One value among its siblings: how far out it is by their own spread, and the chance of that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL, normal_tail, student_tail

FEWEST = 3
"""Siblings below which none can be told to be the odd one."""
_SIGMA = 1.4826
"""Median absolute deviation to standard deviation, of a normal distribution."""


@dataclass(frozen=True)
class Outlier:
    """A sibling that stands out. `delta`: its distance to the median, `t`: that in units of the siblings' spread."""

    index: int
    delta: float
    t: float
    p: float
    """Two-sided, times the comparisons."""


def standing_out(values: Array, floor: Array | float, comparisons: float, least: float) -> list[Outlier]:
    """The values that differ from the median of their siblings by more than chance and by at least `least`.

    `values`: float64 shape (n,). `floor`: the standard deviation that sampling alone makes, shape (n,) or one. Two
    tests must agree. Against the siblings' own spread, their median absolute deviation, which the odd one cannot
    widen, with Student's tail of n - 1 degrees of freedom, since a few siblings tell little of a spread. And against
    sampling, with the normal tail. Where more than a third stand out, the siblings differ on purpose and none is
    named.
    """
    if len(values) < FEWEST:
        return []
    delta = values - np.median(values)
    size, floors = np.abs(delta), np.broadcast_to(np.asarray(floor, np.float64), values.shape)
    spread = np.maximum(_SIGMA * np.median(size), floors / 3.0)
    found = []
    for i in np.flatnonzero(size >= least):
        t = float(size[i] / spread[i])
        p = 2.0 * comparisons * max(student_tail(t, len(values) - 1.0), normal_tail(float(size[i] / floors[i])))
        if p < LEVEL:
            found.append(Outlier(int(i), float(delta[i]), t, p))
    return found if len(found) <= max(1, len(values) // 3) else []
