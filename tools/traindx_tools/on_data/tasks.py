"""Inputs and labels of a set, and what a simple model of the other shards says of each shard's labels.

The model is ridge regression on one-hot labels over simple features (`features.py`). It is no good classifier and
need not be: where it predicts the labels of all shards but one, that one is labelled otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.features import prepared, raw_features
from traindx_tools.on_data.patches import patch_features, suits
from traindx_tools.on_data.readers.bounds import in_blocks
from traindx_tools.on_data.roles import (
    ROWS_PER_CLASS,
    codes,
    input_fields,
    is_group,
    is_identifier,
    is_target,
    keys,
)
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

MOST_ROWS = 20_000
"""Rows of all shards together that the model sees."""
MOST_TASKS = 6
"""Labels of one set that are looked at."""
MOST_BESIDE = 32
"""Single numbers beside texts that are looked at."""
USEFUL = 0.2
"""Skill below which a model tells nothing of a map."""
WEAK = 0.5
"""Median skill of a model below which pictures and signals are looked at by their patches as well."""
MOST_STRONGER = 2
MOST_PATCHED = 6_000
"""Rows whose patches are looked at."""
NEIGHBOURS = 0.9
"""Share of the rows of a sample that the next one follows, from which on they are blocks."""
FOLDS = 5
RIDGE = 0.02
"""Penalty, as a share of the mean diagonal."""


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a shard that the model sees: numbers of rows, features, labels as places among the kinds."""

    shard: Shard
    index: Array
    x: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Task:
    """One label of a set beside its inputs."""

    data: DataSet
    field: str
    inputs: tuple[str, ...]
    kinds: Array
    parts: tuple[Part, ...]
    binned: bool = False
    """Whether the label is a number that was cut into four ranges."""

    @cached_property
    def products(self) -> tuple[tuple[Array, Array], ...]:
        """X'X and X'Y of each part: sums of them are models of any parts together."""
        return tuple(_products(p.x, p.y, len(self.kinds)) for p in self.parts)

    def others(self, part: int) -> list[int]:
        """The parts whose model judges a part: those of training, or of its own split where there are none else."""
        mine = self.parts[part].shard.split
        same = [i for i, p in enumerate(self.parts) if i != part and p.shard.split == mine]
        train = [i for i, p in enumerate(self.parts) if i != part and p.shard.split == "train"]
        return same if mine in ("train", "") else train or same

    @cached_property
    def scores(self) -> tuple[Array | None, ...]:
        """Shape (rows, kinds) of each part: by the model of the others, or of its other rows where it is alone."""
        return tuple(self._scores(i) for i in range(len(self.parts)))

    def _scores(self, i: int) -> Array | None:
        others = self.others(i)
        if not others:
            return folded(self.parts[i], self.parts[i].y, len(self.kinds))
        gram = np.sum([self.products[j][0] for j in others], axis=0)
        cross = np.sum([self.products[j][1] for j in others], axis=0)
        return np.asarray(self.parts[i].x @ solved(gram, cross))

    @cached_property
    def chance(self) -> tuple[float, ...]:
        """Of each part, the share of its most frequent label: what guessing reaches."""
        return tuple(float(np.bincount(p.y).max() / len(p.y)) for p in self.parts)

    @cached_property
    def accuracy(self) -> tuple[float, ...]:
        """Of each part, the share of its labels that the model names."""
        return tuple(
            float((s.argmax(axis=1) == p.y).mean()) if s is not None else 0.0
            for s, p in zip(self.scores, self.parts, strict=True)
        )

    def skill(self, i: int) -> float:
        """How far above chance: 0 is guessing, 1 every label."""
        return (self.accuracy[i] - self.chance[i]) / max(1e-9, 1.0 - self.chance[i])


def _products(x: Array, y: Array, kinds: int) -> tuple[Array, Array]:
    hot = np.zeros((len(y), kinds), np.float32)
    hot[np.arange(len(y)), y] = 1.0
    return (x.T @ x).astype(np.float64), (x.T @ hot).astype(np.float64)


def solved(gram: Array, cross: Array) -> Array:
    """The weights of a ridge regression."""
    ridge = RIDGE * np.trace(gram) / len(gram) + 1e-6
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), cross).astype(np.float32)


def folded(part: Part, y: Array, kinds: int) -> Array:
    """Scores of each row by a model of four fifths without it. Folds are blocks of rows: neighbours are alike."""
    return folded_all(part, (y,), kinds)[0]


def folded_all(part: Part, labels: Sequence[Array], kinds: int) -> list[Array]:
    """`folded` of several labels of the same rows: the inputs are multiplied and solved once."""
    rows = len(part.x)
    folds = np.arange(rows) * 8 * FOLDS // rows % FOLDS
    hot = np.zeros((rows, kinds * len(labels)), np.float32)
    for at, y in enumerate(labels):
        hot[np.arange(rows), y + at * kinds] = 1.0
    within = [folds == k for k in range(FOLDS)]
    grams = [(part.x[w].T @ part.x[w]).astype(np.float64) for w in within]
    crosses = [(part.x[w].T @ hot[w]).astype(np.float64) for w in within]
    gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
    out = np.empty_like(hot)
    for w, own, mine in zip(within, grams, crosses, strict=True):
        out[w] = part.x[w] @ solved(gram - own, cross - mine)
    return [out[:, at * kinds : (at + 1) * kinds] for at in range(len(labels))]


def tasks_of(data: DataSet) -> tuple[Task, ...]:
    """The labels of a set that have inputs beside them, at most `MOST_TASKS`; found once for a set."""
    if "tasks" not in data.memo:
        data.memo["tasks"] = tuple(_tasks(data))
    tasks: tuple[Task, ...] = data.memo["tasks"]
    return tasks


def _tasks(data: DataSet) -> Iterator[Task]:
    labels = sorted(data.labels, key=lambda name: not is_target(name))  # of many fields the likely ones come first
    targets = [(name, False) for name in labels] + [(n, True) for n in _numeric_targets(data, labels)]
    features: Features = {}
    for at, (name, binned) in enumerate(targets[:MOST_TASKS]):
        made = _task(data, name, tuple(labels), binned, features)
        if made is not None:
            yield _stronger(made, features) if at < MOST_STRONGER else made


def _stronger(task: Task, features: Features) -> Task:
    """The task with features of patches beside the others where a linear model is weak and they make it better."""
    shards = [p.shard for p in task.parts]
    fields = [n for n in task.inputs if all(n in s.columns and suits(s.columns[n]) for s in shards)]
    one_shape = all(len({s.columns[n].row_shape for s in shards}) == 1 for n in fields)
    if not fields or not one_shape or _typical(task) >= WEAK:
        return task
    share = max(50, MOST_PATCHED // len(shards))
    chosen = [np.unique(np.linspace(0, len(p.y) - 1, min(len(p.y), share)).astype(np.int64)) for p in task.parts]
    key = (("patches", *fields), tuple(id(s) for s in shards))
    if key not in features:
        raw = [
            np.concatenate([patch_features(p.shard.columns[n], p.index[c]) for n in fields], axis=1)
            for p, c in zip(task.parts, chosen, strict=True)
        ]
        features[key] = prepared(raw)
    parts = [
        Part(p.shard, p.index[c], np.concatenate([p.x[c], x], axis=1), p.y[c])
        for p, c, x in zip(task.parts, chosen, features[key], strict=True)
    ]
    other = replace(task, parts=tuple(parts))
    return other if _typical(other) > max(USEFUL, 1.5 * _typical(task)) else task


def _typical(task: Task) -> float:
    return float(np.median([task.skill(i) for i in range(len(task.parts))]))


def _numeric_targets(data: DataSet, labels: Sequence[str]) -> list[str]:
    """Fields of one number a row beside fields of many: what a regression is to predict."""
    first = data.shards[0]
    wide = any(int(np.prod(c.row_shape)) >= 4 for c in first.columns.values())
    return [
        n
        for n, c in first.columns.items()
        if wide and n not in labels and c.is_float and int(np.prod(c.row_shape)) == 1 and c.missing is None
    ]


Features = dict[tuple[tuple[str, ...], tuple[int, ...]], list[Array]]
"""What was made of the same inputs of the same shards."""


def _task(data: DataSet, name: str, labels: tuple[str, ...], binned: bool, features: Features) -> Task | None:
    shards = [s for s in data.shards if name in s.columns and s.rows >= 2 * ROWS_PER_CLASS]
    if not shards:
        return None
    inputs = tuple(f for f in input_fields(shards[0], (*labels, name)) if f != name)
    inputs += _numbers_beside(shards[0], inputs, (*labels, name))
    if not inputs:
        return None
    share = max(50, MOST_ROWS // len(shards))
    index = [_looked_at(s, share) for s in shards]
    key = (inputs, tuple(id(s) for s in shards))
    if key not in features:
        raw = [raw_features(s, inputs, i) for s, i in zip(shards, index, strict=True)]
        features[key] = prepared(raw) if len({r.shape[1] for r in raw}) == 1 and raw[0].shape[1] else []
    if not features[key]:
        return None
    kinds = _bins(shards, name) if binned else np.unique(np.concatenate([keys(s.columns[name]) for s in shards]))
    if not 2 <= len(kinds) <= 400:
        return None
    parts = []
    for shard, rows, x in zip(shards, index, features[key], strict=True):
        y = _cut(shard.columns[name], kinds) if binned else codes(shard.columns[name], kinds)
        parts.append(Part(shard, rows, x, y[rows]))
    return Task(data, name, inputs, kinds, tuple(parts), binned)


def _looked_at(shard: Shard, most: int) -> Array:
    """Rows that the model sees: evenly spaced, or a piece of each block where the shard is a sample in blocks."""
    if shard.numbers is not None and shard.rows > most:
        return in_blocks(shard.rows, most)
    return np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, most)).astype(np.int64))


def in_order(part: Part) -> bool:
    """Whether the model saw neighbouring rows, so that a shift means something: all of a file, or blocks of it."""
    if part.shard.numbers is None:
        return len(part.index) == part.shard.rows
    return float((np.diff(part.shard.numbers[part.index]) == 1).mean()) >= NEIGHBOURS if len(part.index) > 1 else False


def _numbers_beside(shard: Shard, inputs: tuple[str, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """Single numbers of a row beside its texts: in a table both are inputs."""
    if not inputs or any(shard.columns[n].kind != "text" for n in inputs):
        return ()
    return tuple(
        n
        for n, c in shard.columns.items()
        if n not in (*labels, *inputs) and c.is_float and not c.row_shape and not is_identifier(c) and not is_group(n)
    )[:MOST_BESIDE]


def _bins(shards: list[Shard], name: str) -> Array:
    values = np.concatenate([np.asarray(s.columns[name].values, np.float64).reshape(-1) for s in shards])
    values = values[np.isfinite(values)]
    return np.unique(np.quantile(values, [0.0, 0.25, 0.5, 0.75])) if len(values) else values


def _cut(column: Column, edges: Array) -> Array:
    values = np.nan_to_num(np.asarray(column.values, np.float64).reshape(-1))
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 1)
