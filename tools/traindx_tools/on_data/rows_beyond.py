"""What of a shard makes its scale another one: a stretch of its rows alone, or sums where the siblings hold parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import distance
from traindx_tools.on_data.stretches import Stretch, heaviest

FEWEST = 20
INSIDE, OUTSIDE, WHOLE = 0.85, 0.02, 0.9
"""Share of the stretch's rows beyond all values of the siblings, of the other rows, and of all rows."""
RISES, ALIKE = 0.99, 0.15
"""Share of the steps that go one way, and distance of their distribution to the siblings' values."""


def stretch_beyond(group: Sequence[Shard], index: int, name: str) -> Stretch | None:
    """The stretch whose rows lie beyond all values of the siblings, where hardly any other row does."""
    mine, others = _sides(group, index, name)
    if len(mine) < 2 * FEWEST or not len(others):
        return None
    low, high = float(others.min()), float(others.max())
    slack = 0.02 * (high - low)
    hits = (mine < low - slack) | (mine > high + slack)
    found = heaviest(np.where(hits, 1.0, -1.0))
    inside = found.inside(len(mine))
    good = FEWEST <= found.rows <= WHOLE * len(mine) and float(hits[inside].mean()) >= INSIDE
    return found if good and float(hits[~inside].mean()) <= OUTSIDE else None


def are_sums(group: Sequence[Shard], index: int, name: str) -> bool:
    """Whether the values are running sums of what the siblings hold: they rise by steps that are their values."""
    mine, others = _sides(group, index, name)
    if min(len(mine), len(others)) < 2 * FEWEST:
        return False
    steps = np.diff(mine)
    rises, usual = float((steps >= 0).mean()), float((np.diff(others) >= 0).mean())
    noise = 1.36 * math.sqrt(1.0 / len(steps) + 1.0 / len(others))
    return rises >= RISES > usual and distance(np.sort(steps), np.sort(others)) <= ALIKE + noise


def _sides(group: Sequence[Shard], index: int, name: str) -> tuple[Array, Array]:
    """The numbers of the shard and of its siblings; none where they are no single numbers in their order."""
    columns = [s.columns[name] for s in group]
    if any(c.row_shape or c.kind != "number" for c in columns) or group[index].numbers is not None:
        return np.empty(0), np.empty(0)
    values = [np.asarray(c.values, np.float64) for c in columns]
    others = np.concatenate([v for k, v in enumerate(values) if k != index])
    return values[index], others[np.isfinite(others)]
