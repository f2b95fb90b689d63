"""What a transition says of the numbers that belong to it: a reward, of a state, an action and the next state.

States follow each other row by row, so that one alone tells hardly which row it is of. Both ends of a step and what was
done in it tell by how much a number that is computed from them changes from step to step; where it jumps (a bonus at
the goal) least absolute errors do not mind, and the step before has another change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.on_data.chains import chained_fields
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.roles import is_identifier, is_time
from traindx_tools.on_data.shard import Shard

TOLD = 0.5
"""Share of the square of a typical change that transitions must tell."""
MOST_ROWS, FITTED = 400_000, 12_000
"""Rows of all files, and those that the relation is taken from."""
WIDTH = 24
"""Numbers of a transition, of which products of two are taken as well."""
KINDS = 12
"""Different values from which on a number is no flag."""
ROUNDS = 8
"""Of least absolute errors: a part that is off must not lead."""
RIDGE = 1e-9


def fits_of_transitions(group: Sequence[Shard], fields: Sequence[str]
                        ) -> Iterator[tuple[str, str, tuple[Array, ...]]]:
    """Field, what it is, and by shard what transitions say of its change from the row before beside it (rows, 2)."""
    follow = chained_fields(group)
    chained = [n for n in group[0].columns if n in follow]
    if len(chained) < 2 or sum(s.rows for s in group) > MOST_ROWS:
        return
    rest = [n for n in group[0].columns if n not in chained and all(_is_number(s, n) for s in group)]
    for name in [n for n in rest if n in fields and _is_target(group, n)]:
        inputs = [n for n in (*chained, *rest) if n != name]
        x = [np.concatenate([_flat(s, n) for n in inputs], axis=1) for s in group]
        if x[0].shape[1] > WIDTH or len({p.shape[1] for p in x}) > 1:
            continue
        y = [_flat(s, name)[:, 0] for s in group]
        said = _told(np.concatenate(x), np.concatenate(y))
        if said is not None:
            ends = np.cumsum([len(p) for p in y])[:-1]
            change = np.diff(np.concatenate(y), prepend=y[0][:1])
            pairs = np.split(np.stack([said, change], axis=1), ends)
            yield name, "how far its change is from what transitions say", tuple(pairs)


def _is_number(shard: Shard, name: str) -> bool:
    column = shard.columns.get(name)
    return column is not None and column.kind == "number" and column.values.dtype.kind in "iuf" and (
        column.rows == shard.rows and column.missing is None and len(column.row_shape) <= 1
        and not is_time(name) and not is_identifier(column) and bool(np.isfinite(column.values).all()))


def _is_target(group: Sequence[Shard], name: str) -> bool:
    return all(s.columns[name].is_float and int(np.prod(s.columns[name].row_shape)) == 1 for s in group) and (
        len(np.unique(group[0].columns[name].values[:4000])) > KINDS)


def _flat(shard: Shard, name: str) -> Array:
    return np.asarray(shard.columns[name].values, np.float64).reshape(shard.rows, -1)


def _told(x: Array, y: Array) -> Array | None:
    """By how much the number changes from the row before, by its relation to squares and products; None where that
    tells too little."""
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    one, other = np.triu_indices(x.shape[1])
    some = np.unique(np.linspace(1, len(x) - 1, min(len(x) - 1, FITTED)).astype(np.int64))
    design = _design(x[some], one, other) - _design(x[some - 1], one, other)
    if len(some) < 5 * design.shape[1] or not y.std() > 0:
        return None
    target, weights = (y[some] - y[some - 1]) / y.std(), np.ones(len(some))
    for _ in range(ROUNDS):
        weighted = design * weights[:, None]
        gram = weighted.T @ design
        way = np.linalg.solve(gram + RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram)), weighted.T @ target)
        left = np.abs(target - design @ way)
        weights = 1.0 / np.maximum(left, 0.1 * float(np.median(left)) + 1e-9)
    if float(np.median(left)) ** 2 > (1.0 - TOLD) * float(np.median(np.abs(target))) ** 2:
        return None
    levels = [_design(p, one, other) @ way for p in np.array_split(x, max(1, len(x) // 20_000))]
    return np.asarray(np.diff(np.concatenate(levels), prepend=0.0) * y.std())


def _design(x: Array, one: Array, other: Array) -> Array:
    return np.concatenate([x, x[:, one] * x[:, other]], axis=1)
