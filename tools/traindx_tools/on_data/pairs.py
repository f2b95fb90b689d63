"""Two fields of the same rows that tell each other: how well each row's own fits, and those of its neighbours."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import THUMBNAIL, Array, Column
from traindx_tools.on_data.roles import codes, is_id_name, is_label, keys
from traindx_tools.on_data.row_statistics import is_tokens
from traindx_tools.on_data.shard import Shard

LAGS = tuple(range(-5, 6))
SIDE = 16
"""Cells along a side in which pictures are laid against each other."""
NARROWEST = 4
CELLS, LEVELS = 5, 4
"""Cells along a side, and levels of a channel, by which words are told from pictures."""
WIDEST = 96
"""Values of a vector; a longer one is projected."""
MOST_ROWS = 4000
MOST_PIXELS = 60_000
RIDGE = 0.05
WORDS = 2
"""Spaces of a typical text, from which on its words say something."""
BUCKETS = 64
"""Values of a text."""
MOST_TEXTS = 2
LONGEST = 600
"""Characters of a text that are looked at."""
_NUMBERED = re.compile(r"^(.*?)[_.\- ]?\d+$")


@dataclass(frozen=True, eq=False)
class Side:
    """A field, or columns that are numbered alike, of all shards: float32 (rows, ...) each."""

    name: str
    parts: tuple[Array, ...]
    picture: bool
    text: bool = False
    kinds: bool = False
    """Whether it is a class of each row, as a one-hot code."""
    looks: tuple[Array, ...] = ()
    """Of pictures, float32 (rows, values): what words may tell of them, colours and where they are."""


def sides_of(group: Sequence[Shard], fields: Sequence[str]) -> list[Side]:
    """The fields that hold enough to tell rows apart."""
    out, numbered = [], dict[str, list[str]]()
    for name in fields:
        columns = [s.columns[name] for s in group if name in s.columns]
        if len(columns) < len(group) or any(not _suits(c) for c in columns) or is_id_name(name):
            continue
        shapes = {c.row_shape for c in columns}
        if shapes == {()}:
            match = _NUMBERED.match(name)
            if match is not None and columns[0].is_float:
                numbered.setdefault(match[1], []).append(name)
            continue
        size = int(np.prod(columns[0].row_shape))
        if len(shapes) == 1 and size >= NARROWEST:
            out.append(_side(name, [np.asarray(c.values[:MOST_ROWS], np.float32) for c in columns]))
    for name in fields:
        texts = _texts(group, name) if sum(s.text for s in out) < MOST_TEXTS else None
        out += [Side(name, tuple(texts), False, True)] if texts is not None else []
    for stem, names in numbered.items():
        if len(names) >= NARROWEST:
            out.append(_side(stem, [np.stack([np.asarray(s.columns[n].values[:MOST_ROWS], np.float32) for n in names],
                                             axis=1) for s in group]))
    return out


def kinds_of(group: Sequence[Shard]) -> Iterator[Side]:
    """The fields of few classes: of a catalogue they may be all that says what its rows are."""
    for name in [n for n in group[0].columns if all(n in s.columns and is_label(s.columns[n]) for s in group)][:2]:
        kinds = np.unique(np.concatenate([keys(s.columns[name]) for s in group]))
        if NARROWEST <= len(kinds) <= BUCKETS:
            hot = np.eye(len(kinds), dtype=np.float32)
            yield Side(name, tuple(hot[codes(s.columns[name], kinds)][:MOST_ROWS] for s in group), False, kinds=True)


def _texts(group: Sequence[Shard], name: str) -> list[Array] | None:
    """float32 shape (rows, 64) of each shard: which words are there, rare ones with more weight; None of other fields.
    """
    columns = [c for s in group if (c := s.columns.get(name)) is not None and c.kind == "text"
               and len(c.texts) == s.rows]
    some = [t for c in columns for t in c.texts[:100]]
    if len(columns) < len(group) or not some or sum(t.count(" ") for t in some) < WORDS * len(some):
        return None
    made = []
    for column in columns:
        table = np.zeros((min(column.rows, MOST_ROWS), BUCKETS), np.float32)
        for row, text in enumerate(column.texts[:MOST_ROWS]):
            marks = [zlib.crc32(w.strip(".,;:!?\"'()").encode("utf-8", "replace")) % BUCKETS
                     for w in text[:LONGEST].lower().split()]
            if marks:
                table[row] = np.sqrt(np.bincount(marks, minlength=BUCKETS))
        made.append(table)
    share = np.concatenate([m[:2000] > 0 for m in made]).mean(axis=0)
    weight = np.sqrt(np.log(1.0 / np.clip(share, 1e-3, 0.99)))
    return [np.asarray(m * weight, np.float32) for m in made]


def _suits(column: Column) -> bool:
    return column.kind == "number" and column.values.dtype.kind in "iufb" and not is_tokens(column)


def _side(name: str, parts: Sequence[Array]) -> Side:
    long = [n for n in parts[0].shape[1:] if n >= SIDE]
    picture = len(long) == 2 and int(np.prod(parts[0].shape[1:])) <= 4 * int(np.prod(long))
    made = [cells(np.nan_to_num(p)) if picture else _vector(np.nan_to_num(p)) for p in parts]
    looks = tuple(_look(np.nan_to_num(p)) for p in parts) if picture else ()
    return Side(name.removesuffix(THUMBNAIL), tuple(made), picture, looks=looks)


def _look(x: Array) -> Array:
    """float32 shape (rows, values): the mean of each channel in 5 x 5 cells, and how often it has which values."""
    long = [a for a in range(1, x.ndim) if x.shape[a] >= SIDE]
    x = np.moveaxis(x, long, [1, 2]).reshape(len(x), x.shape[long[0]], x.shape[long[1]], -1).astype(np.float32)
    low, high = float(x.min(initial=0)), float(x.max(initial=0))
    levels = np.clip((x - low) / max(1e-9, high - low) * LEVELS, 0, LEVELS - 1).astype(np.int64)
    places = (levels * LEVELS ** np.arange(min(3, x.shape[3]))).sum(axis=3) if x.shape[3] <= 3 else levels[..., 0]
    kinds = LEVELS ** min(3, x.shape[3])
    flat = places.reshape(len(x), -1) + kinds * np.arange(len(x))[:, None]
    often = np.sqrt(np.bincount(flat.reshape(-1), minlength=kinds * len(x)).reshape(len(x), kinds))
    for axis in (1, 2):
        edges = np.linspace(0, x.shape[axis], CELLS + 1).astype(np.int64)
        sizes = np.diff(edges).reshape([-1 if a == axis else 1 for a in range(4)])
        x = np.add.reduceat(x, edges[:-1], axis=axis) / sizes
    return np.asarray(np.concatenate([x.reshape(len(x), -1), often], axis=1), np.float32)


def cells(x: Array) -> Array:
    """float32 shape (rows, 16, 16, channels): each picture about 0 with spread 1."""
    long = [a for a in range(1, x.ndim) if x.shape[a] >= SIDE]
    x = np.moveaxis(x, long, [1, 2]).reshape(len(x), x.shape[long[0]], x.shape[long[1]], -1)
    for axis in (1, 2):
        edges = np.linspace(0, x.shape[axis], SIDE + 1).astype(np.int64)
        shape = [1, 1, 1, 1]
        shape[axis] = SIDE
        x = np.add.reduceat(x, edges[:-1], axis=axis) / np.diff(edges).reshape(shape)
    x = x - x.mean(axis=(1, 2), keepdims=True)
    return np.asarray(x / (x.std(axis=(1, 2, 3), keepdims=True) + 1e-6), np.float32)


def _vector(x: Array) -> Array:
    flat = x.reshape(len(x), -1)
    if flat.shape[1] <= WIDEST:
        return flat
    way = np.random.default_rng(flat.shape[1]).normal(size=(flat.shape[1], WIDEST)).astype(np.float32)
    return np.asarray(flat @ way / np.sqrt(flat.shape[1]), np.float32)


def predicted(a: Side, b: Side, order: Mapping[int, Array] | None = None) -> tuple[Array, ...] | None:
    """What `a` says of `b`, row by row; pictures pixel by pixel, vectors by ridge regression on rows left out.

    `order`: by shard, the rows of `b` that belong to the rows of `a`; None where they are as stored.
    """
    if a.picture and b.picture:
        return _by_pixel(a, b)
    if b.picture or (a.picture and not b.text):
        return None
    given = a.looks if a.picture else a.parts
    x = [_standard(p, given) for p in given]
    y = [_standard(p, b.parts) for p in b.parts]
    y = [v if order is None else v[order[i]] for i, v in enumerate(y)]
    if sum(map(len, x)) < 6 * (x[0].shape[1] + 1):
        return None
    return tuple(_folded(x, y))


def _standard(part: Array, parts: Sequence[Array]) -> Array:
    some = np.concatenate([p[:: max(1, len(p) // 500)] for p in parts]).astype(np.float64)
    return np.asarray(np.clip((part - np.median(some, axis=0)) / (some.std(axis=0) + 1e-9), -5.0, 5.0))


def _folded(x: Sequence[Array], y: Sequence[Array], folds: int = 5) -> Iterator[Array]:
    every, target = np.concatenate(x), np.concatenate(y)
    every = np.concatenate([every, np.ones((len(every), 1))], axis=1)
    fold = np.concatenate([np.arange(len(v)) * 8 * folds // len(v) % folds for v in x])
    out = np.empty_like(target)
    gram, cross = every.T @ every, every.T @ target
    for k in range(folds):
        own = fold == k
        g, c = gram - every[own].T @ every[own], cross - every[own].T @ target[own]
        out[own] = every[own] @ np.linalg.solve(g + RIDGE * np.trace(g) / len(g) * np.eye(len(g)), c)
    yield from np.split(out, np.cumsum([len(v) for v in x])[:-1])


def _by_pixel(a: Side, b: Side) -> tuple[Array, ...]:
    """The picture `b` of each row from the colours and edges of `a` at the same place."""
    seen = [_local(p) for p in a.parts]
    y = [p.mean(axis=3) for p in b.parts]
    x = np.concatenate([s.reshape(-1, s.shape[-1]) for s in seen])
    target = np.concatenate([v.reshape(-1) for v in y])
    some = np.random.default_rng(0).permutation(len(x))[:MOST_PIXELS]
    gram, cross = x[some].T @ x[some], x[some].T @ target[some]
    way = np.linalg.solve(gram + 1e-3 * np.trace(gram) / len(gram) * np.eye(len(gram)), cross)
    return tuple((s @ way).reshape(len(s), -1) for s in seen)


def _local(p: Array) -> Array:
    """Colours, their squares, and the difference to the surroundings, at each place."""
    grey = p.mean(axis=3, keepdims=True)
    near = sum(np.roll(grey, (dy, dx), (1, 2)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) / 9.0
    wide = sum(np.roll(grey, (dy, dx), (1, 2)) for dy in (-4, 0, 4) for dx in (-4, 0, 4)) / 9.0
    bent = grey - wide
    return np.concatenate([p, p**2, grey - near, bent, np.abs(bent), bent**2, np.maximum(bent, 0),
                           np.ones_like(grey)], axis=3).astype(np.float64)


def truth_of(b: Side, index: int) -> Array:
    """What is predicted, float64 shape (rows, values)."""
    return b.parts[index].mean(axis=3).reshape(len(b.parts[index]), -1) if b.picture else (
        _standard(b.parts[index], b.parts))


def agreement(said: Array, truth: Array) -> Array:
    """float64 shape (rows,): the correlation of what was said with the truth, over the values of a row."""
    p, q = (v - v.mean(axis=1, keepdims=True) for v in (said, truth))
    size = np.sqrt((p**2).sum(axis=1) * (q**2).sum(axis=1))
    return np.asarray((p * q).sum(axis=1) / np.maximum(size, 1e-12))


def best_lag(said: Array, truth: Array) -> Array:
    """int64 shape (rows,): by how many rows the truth that fits each row best lies behind it."""
    scores = np.stack([agreement(said, np.roll(truth, -k, axis=0)) for k in LAGS])
    return np.asarray(np.asarray(LAGS)[scores.argmax(axis=0)])
