"""Fields of which one is the next row of another: transitions (state, action, next state), prices and those of the day
before.

What is such by design tells where the rows go on and where they break off: at the end of an episode, of a file, of a
recording. The relation is exact, and hence no pair of fields has it by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard

HOLDS = 0.5
"""Share of the rows in which a field must be the next row of the other: episodes of two rows have no more breaks."""
MOVES = 0.8
"""Share of the rows that must differ from the one before: what stands still is its own next row."""
FEWEST = 60
MOST_FIELDS = 40
LOOKED = 256
"""Rows that are compared first."""


@dataclass(frozen=True, eq=False)
class Chain:
    """`following` of a row is `own` of the next one."""

    own: str
    following: str
    broken: Array
    """bool shape (rows - 1,): where it is not."""


def chains_of(shard: Shard) -> tuple[Chain, ...]:
    """Every pair of fields of numbers of one shape that are so, () where rows were left out in between."""
    if shard.numbers is not None or shard.rows < FEWEST:
        return ()
    columns = [c for c in shard.columns.values() if _varies(c, shard.rows)][:MOST_FIELDS]
    return tuple(c for a in columns for b in columns if a is not b and a.row_shape == b.row_shape
                 and (c := _chain(a, b)) is not None)


def chained_fields(group: Sequence[Shard]) -> frozenset[str]:
    """Fields that are the next row of another one in every shard, and those others."""
    some = [frozenset(n for c in chains_of(s) for n in (c.own, c.following)) for s in group]
    return frozenset.intersection(*some) if some else frozenset()


def _varies(column: Column, rows: int) -> bool:
    if column.kind != "number" or column.rows != rows or column.values.dtype.kind not in "iuf":
        return False
    some = column.values[:LOOKED]
    return float(_differ(some[1:], some[:-1]).mean()) >= MOVES


def _chain(own: Column, following: Column) -> Chain | None:
    a, b = own.values, following.values
    for rows in (LOOKED, len(a)):
        broken = _differ(b[:rows][:-1], a[:rows][1:])
        same = ~_differ(b[:rows], a[:rows])
        if float(broken.mean()) > 1.0 - HOLDS or float(same.mean()) > 1.0 - MOVES:
            return None
    return Chain(own.name, following.name, broken)


def _differ(one: Array, other: Array) -> Array:
    """bool shape (rows,): whether any value of a row is another one; two that are no numbers are the same."""
    apart = one != other
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        apart &= ~(np.isnan(one) & np.isnan(other))
    return np.asarray(apart.reshape(len(apart), -1).any(axis=1))
