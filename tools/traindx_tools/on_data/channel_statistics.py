"""Means and spreads of the channels and columns of a set, beside which stored ones are laid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.roles import is_id_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.slices import Part, moments, parts_of, values_at
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import Statistics

FEWEST = 50
AGREES = 0.1
"""Standard deviations within which a channel agrees."""
FAR = 0.5
"""Standard deviations from which on one is far off."""

@dataclass(frozen=True, eq=False)
class Measured:
    """Means and spreads of channels; `values(k)`: the values of one."""

    field: str
    means: Array
    spreads: Array
    margin: Array
    """By how much the mean may differ, in spreads: sampling, and training from all."""
    values: Callable[[int], Array]


def matching(data: DataSet, said: Statistics) -> Iterator[Measured]:
    """The fields of a set that have as many channels, or the columns that are called so."""
    named = [n for n in said.names if n in data.fields]
    train = [s for s in data.shards if s.split == "train"] or list(data.shards)
    if len(named) == len(said.names) >= 2:
        yield from of_columns(data, named)
        return
    for name in data.fields:
        groups = [
            [s for s in g if name in s.columns and s.columns[name].kind == "number"] for g in (train, data.shards)
        ]
        parts = parts_of(groups[1], name) if all(groups) else []
        for axis in sorted({p.axis for p in parts}):
            along = [p for p in parts if p.axis == axis]
            if len(along) == len(said.means):
                sides = [_pooled([moments(s, name, axis) for s in g], [s.rows for s in g]) for g in groups]
                yield _measured(name, sides, groups, _part_values(groups[0], name, along))


def of_columns(data: DataSet, named: Sequence[str]) -> Iterator[Measured]:
    """The columns of these names, where all are plain numbers."""
    train = [s for s in data.shards if s.split == "train"] or list(data.shards)
    groups = [[s for s in g if all(n in s.columns for n in named)] for g in (train, data.shards)]
    columns = [s.columns[n] for g in groups for s in g for n in named]
    if all(groups) and all(c.kind == "number" and not c.row_shape for c in columns):
        sides = [_pooled([_columns(s, named) for s in g], [s.rows for s in g]) for g in groups]
        yield _measured("", sides, groups, lambda k: _joined(groups[0], named[k]))


def _part_values(group: Sequence[Shard], name: str, parts: Sequence[Part]) -> Callable[[int], Array]:
    return lambda k: np.concatenate([values_at(s, name, parts[k]) for s in group])


def _columns(shard: Shard, names: Sequence[str]) -> tuple[Array, Array]:
    seen = [shard.summaries[n] for n in names]
    return np.array([s.mean for s in seen]), np.array([s.std for s in seen])


def _joined(group: Sequence[Shard], name: str) -> Array:
    return np.concatenate([np.asarray(s.columns[name].values, np.float64) for s in group])


def _pooled(told: Sequence[tuple[Array, Array]], rows: Sequence[int]) -> tuple[Array, Array]:
    weights = np.array(rows, np.float64)[:, None] / sum(rows)
    means, spreads = (np.stack([t[k] for t in told]) for k in (0, 1))
    mean = (weights * means).sum(axis=0)
    return mean, np.sqrt((weights * (spreads**2 + (means - mean) ** 2)).sum(axis=0))


def _measured(
    field: str,
    sides: Sequence[tuple[Array, Array]],
    groups: Sequence[Sequence[Shard]],
    values: Callable[[int], Array],
) -> Measured:
    (mean, spread), (whole, wider) = sides
    rows = sum(s.rows for s in groups[0])
    scale = np.maximum(spread, 1e-30)
    apart = np.maximum(np.abs(whole - mean) / scale, np.abs(np.log(np.maximum(wider, 1e-30) / scale)))
    return Measured(field, mean, spread, apart + (1.0 / math.sqrt(rows) if rows >= FEWEST else math.inf), values)


def off_by(said: Statistics, measured: Measured, order: Array, scale: float) -> Array:
    """How far off each channel is: of the mean in spreads, or the logarithm of the ratio of the spreads."""
    spread = np.maximum(measured.spreads * scale, 1e-30)
    mean = np.abs(said.means[order] - measured.means * scale) / spread
    return np.maximum(mean, np.abs(np.log(np.maximum(said.spreads[order], 1e-30) / spread)))


def partly_moved(measured: Measured, said: Statistics) -> Array | None:
    """The column of each where a few of a layer's statistics stand in each other's places and all others agree."""
    places = np.arange(len(said.means))
    if not (np.isfinite(measured.margin).all() and (measured.spreads > 0).all()):
        return None
    off, near = off_by(said, measured, places, 1.0), np.maximum(AGREES, measured.margin)
    moved = np.flatnonzero(off >= near)
    if not 2 <= len(moved) <= 0.5 * len(places) or (off[moved] < FAR).any():
        return None
    whole = np.stack([off_by(said, measured, np.full(len(places), k), 1.0)[moved] for k in moved])
    among = assigned(np.minimum(whole, 1e3))
    if (whole[np.arange(len(moved)), among] >= near[moved][among]).any() or (among == np.arange(len(moved))).any():
        return None
    order: Array = places.copy()
    order[moved] = moved[among]
    return order


def transformed(said: Statistics, measured: Measured, k: int, scale: float) -> bool:
    """Whether a usual transformation of the channel has these statistics."""
    values = measured.values(k) * scale
    values = values[np.isfinite(values)]
    ways = [values[values != 0.0]]
    if len(values) and values.min() >= 0.0:
        positive = values[values > 0.0]
        ways += [np.log1p(values), np.sqrt(values), np.log(positive), np.log10(positive), np.log10(values + 1.0)]
    low, high = np.quantile(values, (0.01, 0.99)) if len(values) else (0.0, 0.0)
    ways += [np.clip(values, low, high), values[(values >= low) & (values <= high)]]
    return any(
        len(w) >= FEWEST and abs(w.mean() - said.means[k]) < AGREES * w.std()
        and abs(math.log(max(float(w.std()), 1e-30) / said.spreads[k])) < AGREES
        for w in ways
    )


def orders_of(lists: Iterable[NameList], data: DataSet, count: int) -> Iterator[list[str]]:
    """Orders in which the columns may be stacked: that of a list of their names, and that of the table."""
    for held in lists:
        if len(held.names) == count and all(n in data.fields for n in held.names):
            yield list(held.names)
    first = data.shards[0]
    plain = [n for n, c in first.columns.items() if c.kind == "number" and not c.row_shape and all(
        n in s.columns and s.columns[n].missing is None for s in data.shards)]
    inputs = [n for n in plain if n not in data.labels and not is_id_name(n)]
    for names in (plain, inputs, plain[:-1], plain[1:], [n for n in plain if not is_id_name(n)][:-1]):
        if len(names) == count:
            yield names
