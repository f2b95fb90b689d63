"""What the rest of a row says of a number in it, where that rest is more than numbers: texts, sequences, arrays, kinds.

A ridge regression on hashed words, on short runs of letters of strings without words (bases, residues, bonds), on which
item stands at which place of rows of few kinds, on lengths and on numbers. Each row is judged by a model of other rows.
Both sides are normal scores of ranks, so that no tail leads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import called_origin
from traindx_tools.on_data.features import narrowed, pooled, prepared
from traindx_tools.on_data.rater_noise import MOST_WIDTH, words_of
from traindx_tools.on_data.roles import is_id_name, is_identifier, is_target, is_time, splits_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import mixed
from traindx_tools.on_data.tasks import solved

MOST_ROWS = 12_000
FEWEST = 200
MOST_TARGETS = 3
KINDS = 4
"""Distinct values of a number, at least."""
MOST_PRODUCTS = 4e9
"""Of rows and squared features, for the models of one target."""
ALPHABET = 8
"""Items of which rows of whole numbers are told by place."""
MOST_PLACES = 128
RUN, HASHED = 4, 256
"""Letters of a run, and places of hashed runs."""
LONG = 20
"""Characters of a text that holds much."""
FOLDS = 5
MOST_CLASSES = 20
RECURRING = 50
"""Distinct values, each with two rows or more on average, from which on they are folds."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Of a number `field`: normal scores of what its row says and of itself, by shard, and which rows they are."""

    field: str
    said: tuple[Array, ...]
    values: tuple[Array, ...]
    rows: tuple[Array, ...]
    features: Array
    """float32 shape (all rows, features)."""
    step: int
    """Every so many rows were looked at."""


def predicted(group: Sequence[Shard], fields: Sequence[str]) -> Iterator[Predicted]:
    """Of numbers that are called as targets are, and of all where a field of the row holds much."""
    total = sum(s.rows for s in group)
    if total < FEWEST:
        return
    there = [n for n in fields if all((c := s.columns.get(n)) is not None and c.rows == s.rows for s in group)]
    rich = [n for n in there if _holds_much([s.columns[n] for s in group])]
    targets = [n for n in there if n not in rich and _is_number([s.columns[n] for s in group])
               and (is_target(n) or rich)]
    step = -(-total // MOST_ROWS)
    rows = tuple(np.arange(0, s.rows, step) for s in group)
    blocks: dict[str, Array | None] = {}
    for name in sorted(targets, key=lambda n: not is_target(n))[:MOST_TARGETS]:
        for n in there:
            if n not in blocks:
                blocks[n] = _features([s.columns[n] for s in group], rows)
        parts = [b for n in there if n not in (name, *targets) and (b := blocks[n]) is not None]
        if not parts:
            continue
        x = prepared([narrowed(np.concatenate(parts, axis=1), 640)])[0]
        y = scores_of(np.concatenate([np.asarray(s.columns[name].values, np.float64)[r]
                                      for s, r in zip(group, rows, strict=True)]))
        said = scores_of(_folded(x, y))
        ends = np.cumsum([len(r) for r in rows])[:-1]
        yield Predicted(name, tuple(np.split(said, ends)), tuple(np.split(y, ends)), rows, x, step)


def _holds_much(columns: Sequence[Column]) -> bool:
    first = columns[0]
    if first.kind == "text":
        return bool(first.texts) and float(np.median(first.values)) >= LONG
    return first.kind == "sequence" or int(np.prod(first.row_shape)) >= 4


def _is_number(columns: Sequence[Column]) -> bool:
    for column in columns:
        if column.kind != "number" or column.row_shape or column.missing is not None or is_id_name(column.name):
            return False
        if column.values.dtype.kind not in "iuf" or is_time(column.name) or is_identifier(column):
            return False
        if called_origin(column.name) or not np.isfinite(column.values).all():
            return False
    return len(np.unique(np.concatenate([c.values[:2000] for c in columns]))) >= KINDS


def _features(columns: Sequence[Column], rows: Sequence[Array]) -> Array | None:
    """What a field gives a model; None of ids, times, origins and splits, which are no inputs."""
    name = columns[0].name
    if is_id_name(name) or is_time(name) or called_origin(name) or any(map(is_identifier, columns)):
        return None
    if any(splits_of(c) is not None for c in columns) or len({(c.kind, c.row_shape) for c in columns}) > 1:
        return None
    made = [_of(c, r) for c, r in zip(columns, rows, strict=True)]
    found = [m for m in made if m is not None]
    return np.concatenate(found) if len(found) == len(columns) and len({f.shape[1] for f in found}) == 1 else None


def _of(column: Column, rows: Array) -> Array | None:
    if column.kind == "text":
        return _of_texts([column.texts[i] for i in rows]) if len(column.texts) == column.rows else None
    if column.kind == "sequence":
        return _of_sequences(column, rows)
    if column.values.dtype.kind not in "iufb" or column.missing is not None:
        return None
    values = column.values[rows]
    if len(column.row_shape) == 1 and values.dtype.kind in "iu" and column.row_shape[0] <= MOST_PLACES:
        kinds = np.unique(column.values[:500])
        if 2 <= len(kinds) <= ALPHABET and column.row_shape[0] >= 8:
            runs = _runs(values.astype(np.int64).reshape(-1), np.full(len(values), values.shape[1]))
            placed = (values[:, :, None] == kinds[None, None, :]).reshape(len(values), -1).astype(np.float32)
            return np.concatenate([narrowed(placed, HASHED), runs], axis=1)
    flat = pooled(values)
    return flat if flat.shape[1] <= MOST_WIDTH else narrowed(flat, HASHED)


def _of_texts(texts: Sequence[str]) -> Array:
    sizes = np.array([[len(t), len(t.split())] for t in texts], np.float32)
    if float(np.median(sizes[:, 1])) > 1:
        return np.concatenate([words_of(texts), np.log1p(sizes)], axis=1, dtype=np.float32)
    whole = [t.encode("utf-8", "replace") for t in texts]
    runs = _runs(np.frombuffer(b"".join(whole), np.uint8).astype(np.int64), np.array([len(w) for w in whole]))
    return np.concatenate([runs, np.log1p(sizes)], axis=1, dtype=np.float32)


def _of_sequences(column: Column, rows: Array) -> Array | None:
    assert column.offsets is not None
    if column.values.dtype.kind not in "iu" or column.inner != 1:
        return None
    items = [column.values[column.offsets[i]:column.offsets[i + 1]][:1000] for i in rows]
    lengths = np.array([len(i) for i in items])
    out = np.zeros((len(items), HASHED), np.float32)
    for row, some in enumerate(items):
        marks = mixed(some.astype(np.int64).view(np.uint64)) % np.uint64(HASHED)
        out[row] = np.bincount(marks.astype(np.int64), minlength=HASHED)
    return np.concatenate([np.sqrt(out), np.log1p(lengths)[:, None]], axis=1, dtype=np.float32)


def _runs(items: Array, lengths: Array) -> Array:
    """How often runs of `RUN` letters occur in each row, hashed."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    code = np.zeros(max(0, len(items) - RUN + 1), np.uint64)
    for k in range(RUN):
        code = mixed(code + items[k:len(items) - RUN + 1 + k].view(np.uint64) + np.uint64(k + 1))
    inside = owner[: len(code)] == owner[RUN - 1:] if len(code) else np.zeros(0, bool)
    place = owner[: len(code)][inside] * HASHED + (code[inside] % np.uint64(HASHED)).astype(np.int64)
    counts = np.bincount(place, minlength=len(lengths) * HASHED)
    return np.sqrt(counts.reshape(len(lengths), HASHED)).astype(np.float32)


def scores_of(values: Array) -> Array:
    """Normal scores of the ranks; equal values have one."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    share = ((np.cumsum(counts) - 0.5 * counts) / max(1, len(values)))[at.reshape(-1)]
    return np.asarray(np.log(share / (1.0 - share)) / 1.702)


def _folded(x: Array, y: Array) -> Array:
    """What models of four fifths of the rows say of the others; folds are blocks of neighbours.

    Of many values that recur, all rows of one are left out together: numbers of other rows (where a copy came from) are
    known from other copies only, and say no more and no less.
    """
    rows = len(x)
    folds = np.arange(rows) * 8 * FOLDS // rows % FOLDS
    kinds, at = np.unique(y, return_inverse=True)
    if RECURRING <= len(kinds) <= rows / 2:
        folds = (mixed(at.reshape(-1).astype(np.uint64)) % np.uint64(FOLDS)).astype(np.int64)
    some = np.arange(rows)[:: max(1, int(np.ceil(rows * x.shape[1] ** 2 / MOST_PRODUCTS)))]
    grams, crosses = [], []
    for k in range(FOLDS):
        own = some[folds[some] == k]
        grams.append((x[own].T @ x[own]).astype(np.float64))
        crosses.append((x[own].T @ y[own].astype(np.float32)[:, None]).astype(np.float64))
    gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
    said = np.empty(rows)
    for k in range(FOLDS):
        said[folds == k] = (x[folds == k] @ solved(gram - grams[k], cross - crosses[k]))[:, 0]
    return said


def told_by_itself(x: Array, y: Array) -> float:
    """Correlation of a number with what models of the same few rows say, of four fifths each; of few values without
    an order (classes) their mean."""
    kinds, counts = np.unique(y, return_counts=True)
    some = kinds[counts >= FOLDS]
    one = _told(x, y)
    if not 2 < len(some) <= MOST_CLASSES:
        return one
    return max(one, float(np.mean([_told(x, (y == k).astype(np.float64)) for k in some])))


def _told(x: Array, y: Array) -> float:
    fold, said = np.arange(len(y)) % FOLDS, np.zeros(len(y))
    for k in range(FOLDS):
        out, kept = fold == k, fold != k
        gram = (x[kept] @ x[kept].T).astype(np.float64)
        ridge = 0.1 * float(np.trace(gram)) / len(gram)
        said[out] = (x[out] @ x[kept].T) @ np.linalg.solve(gram + ridge * np.eye(len(gram)), y[kept])
    return correlation(said, y)


def correlation(one: Array, other: Array) -> float:
    """Of two numbers; 0 where one stands still."""
    if len(one) < 3 or one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
