"""Whether a shard obeys the relation of its siblings once a factor is undone: wind and power, width and area.

Of a column in another unit that is the one thing that a source which is merely different does not do: what goes along
with the column elsewhere goes along with it here as well, at values that are so much larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard

MOST_ROWS = 4_000
"""Of one shard that are looked at."""
BINS = 24
RELATED = 0.5
"""Share of the spread of the other column that is left once it is told by this one, at most: a relation."""
AS_GOOD, BETTER = 1.5, 3.0
"""Times what is left in the siblings, at most once it is undone; times less than as it is, at least."""


NEAR = np.exp(np.linspace(-0.12, 0.12, 25))
"""Factors around the ratio of two spreads that are tried: no spread is exact."""


def obeys_once_undone(group: Sequence[Shard], index: int, name: str, ratio: float, others: Sequence[str]) -> str:
    """The column whose relation to `name` in the siblings holds in the shard once its values are divided; "" for none.

    `others`: names of columns of numbers that all shards have.
    """
    shapes = [tuple(np.shape(s.columns[name].values)) for s in group]
    for other in others:
        if any(len(shape) != 1 or np.shape(s.columns[other].values) != shape
               for s, shape in zip(group, shapes, strict=True)):
            continue  # of vectors no one number goes along with another column
        theirs = [_pairs(s, name, other) for k, s in enumerate(group) if k != index]
        x, y = (np.concatenate([p[side] for p in theirs]) for side in (0, 1))
        here_x, here_y = _pairs(group[index], name, other)
        if min(len(x), len(here_x)) < 10 * BINS or not np.ptp(y) > 0:
            continue
        edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)[1:-1]))
        places = np.searchsorted(edges, x)
        curve = np.array([np.median(y[places == k]) if (places == k).any() else np.nan for k in range(len(edges) + 1)])
        usual = _left(curve, edges, x, y)
        spread = float(np.median(np.abs(y - np.median(y))))
        undone = min(_left(curve, edges, here_x / (ratio * near), here_y) for near in NEAR)
        as_it_is = _left(curve, edges, here_x, here_y)
        if 0 < usual <= RELATED * spread and undone <= AS_GOOD * usual and as_it_is >= BETTER * undone:
            return other
    return ""


def _pairs(shard: Shard, name: str, other: str) -> tuple[Array, Array]:
    x, y = (np.asarray(shard.columns[n].values, np.float64).reshape(-1) for n in (name, other))
    step = max(1, len(x) // MOST_ROWS)
    x, y = x[::step], y[::step]
    there = np.isfinite(x) & np.isfinite(y)
    return x[there], y[there]


def _left(curve: Array, edges: Array, x: Array, y: Array) -> float:
    """The typical distance of a column to what the curve says of it."""
    return float(np.nanmedian(np.abs(y - curve[np.searchsorted(edges, x)])))
