"""Inputs that training rows compute from their own target, and held-out rows from other columns.

A mean over the last seven days that includes the day itself, where the held-out rows have the seven days before: in
both files the column obeys an equation to rounding, and only that of training holds the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.exact_relations import EXACT
from traindx_tools.on_data.roles import is_identifier, is_target, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

FEWEST = 60
"""Rows of each file, and times the number of columns."""
MOST_ROWS, WIDTH, KINDS = 4_000, 60, 6
NEEDED = 10.0
"""Times what the equation leaves, and at least `SEEN` of a spread, that is left in training without the target."""
SEEN = 0.05
_Terms = tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class MadeOfTarget:
    """An input that is made of the target in training, and of other columns in held-out rows."""

    train: Shard
    held_out: Shard
    column: str
    target: str
    equation: _Terms
    other: _Terms
    left: tuple[float, float, float]
    """Root mean squares that are left, in spreads of the column: of both equations, and of training's without the
    target."""
    broken: float
    """What training's equation leaves in the held-out rows."""


def made_of_target(data: DataSet) -> Iterator[MadeOfTarget]:
    """The inputs of the largest training file that held-out files contradict."""
    train = [s for s in data.splits.get("train", ()) if s.columns and s.rows >= FEWEST]
    held = [s for s in data.shards if s.split not in ("", "train") and s.rows >= FEWEST]
    if not train or not held:
        return
    first = max(train, key=lambda s: s.rows)
    for target in _targets(first):
        for shard in held:
            names = [n for n, c in first.columns.items() if _is_measure(c, first.rows, n == target)
                     and n in shard.columns and _is_measure(shard.columns[n], shard.rows, True)]
            if target in names and 3 <= len(names) <= WIDTH and min(first.rows, shard.rows) >= 3 * len(names):
                yield from _of_files(first, shard, names, target)


def _targets(shard: Shard) -> list[str]:
    """The numbers that are called as targets are; else the last column, where it is one."""
    numbers = [n for n, c in shard.columns.items() if _is_measure(c, shard.rows, True)]
    return [n for n in numbers if is_target(n)][:2] or [n for n in list(shard.columns)[-1:] if n in numbers]


def _is_measure(column: Column, rows: int, few: bool) -> bool:
    if column.kind != "number" or column.row_shape or column.values.dtype.kind not in "iuf" or column.rows != rows:
        return False
    if is_time(column.name) or is_identifier(column):
        return False
    return few or len(np.unique(column.values[:2000])) > KINDS


def _of_files(train: Shard, held: Shard, names: Sequence[str], target: str) -> Iterator[MadeOfTarget]:
    x, other = _values(train, names), _values(held, names)
    if min(len(x), len(other)) < FEWEST:
        return
    centre, spread = x.mean(axis=0), x.std(axis=0)
    live = [k for k in range(len(names)) if spread[k] > 1e-9 * (abs(centre[k]) + 1e-30)]
    at = names.index(target)
    z, theirs = (x - centre) / np.where(spread > 0, spread, 1.0), (other - centre) / np.where(spread > 0, spread, 1.0)
    for k in (k for k in live if k != at):
        every = [i for i in live if i != k]
        without = [i for i in every if i != at]
        if at not in every or _fit(theirs, k, without)[0] >= EXACT:  # the rarer of both, and it costs as much
            continue
        left, weights = _fit(z, k, every)
        alone = _fit(z, k, without)[0]
        if left >= EXACT or alone < max(SEEN, NEEDED * left):
            continue
        broken = float(np.sqrt(np.mean((theirs[:, k] - weights[-1] - theirs[:, every] @ weights[:-1]) ** 2)))
        if broken < SEEN:
            continue
        terms, others = _sparse(z, k, every), _sparse(theirs, k, without)
        if at in [i for i, _ in terms]:
            yield MadeOfTarget(train, held, names[k], target, _told(terms, names, spread, k),
                               _told(others, names, spread, k), (left, _fit(theirs, k, without)[0], alone), broken)


def _values(shard: Shard, names: Sequence[str]) -> Array:
    some = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, MOST_ROWS)).astype(np.int64))
    x = np.stack([np.asarray(shard.columns[n].values, np.float64)[some] for n in names], axis=1)
    return np.asarray(x[np.isfinite(x).all(axis=1)])


def _fit(z: Array, k: int, by: Sequence[int]) -> tuple[float, Array]:
    """The root mean square that is left of a column by others and a constant, and their weights."""
    a = np.concatenate([z[:, by], np.ones((len(z), 1))], axis=1)
    weights = np.linalg.lstsq(a, z[:, k], rcond=1e-9)[0]
    return float(np.sqrt(np.mean((z[:, k] - a @ weights) ** 2))), weights


def _sparse(z: Array, k: int, by: Sequence[int]) -> list[tuple[int, float]]:
    """The columns that an equation needs, with their weights: one after another is left out where nothing changes."""
    kept = list(by)
    weights = _fit(z, k, kept)[1][:-1]
    for i in [kept[j] for j in np.argsort(np.abs(weights))]:
        rest = [j for j in kept if j != i]
        if rest and _fit(z, k, rest)[0] < EXACT:
            kept = rest
    return list(zip(kept, _fit(z, k, kept)[1][:-1].tolist(), strict=True))


def _told(terms: Sequence[tuple[int, float]], names: Sequence[str], spread: Array, k: int) -> _Terms:
    """The terms in the units of the columns."""
    return tuple((names[i], float(a * spread[k] / spread[i])) for i, a in terms)
