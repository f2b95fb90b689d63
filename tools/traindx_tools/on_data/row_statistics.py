"""Numbers that describe each row of a field, the same for every format: what a part of the rows may have otherwise.

Of numbers the value, of signals and pictures level, spread, roughness, colour and orientation, of texts letters, spaces
and ends, of tokens how usual they are, of fields that tell each other how well a value fits the rest of its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_group, is_id_name, is_identifier, is_time
from traindx_tools.on_data.row_fit import fits
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.slices import is_padded
from traindx_tools.on_data.summary import mixed
from traindx_tools.on_data.text_statistics import text_statistics

MOST_FEATURES = 64
"""Features of a row that are looked at one by one."""
MOST_ROWS = 8192
"""Rows of a shard that are looked at: of more, every second or third."""
MOST_VALUES = 2**22
"""Values of a field of one shard: of more, fewer rows are looked at."""
SIGNAL = 16
"""Places along an axis from which on it is time or space."""
TOKENS = 8
"""Whole numbers in a row from which on they are tokens."""
BLOCK = 256
"""Tokens of a stream that are looked at as one row."""
FEWEST_SHARDS = 4
PAIRS, MOST_PAIRS = 2**20, 2**23
"""Places for pairs of tokens, and tokens of all shards whose pairs are counted."""
CHANNELS = 8
"""Channels of a signal that are compared with their neighbours."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number of each row that was looked at, by shard."""

    field: str
    told: str
    """What it is, "the value of feature 3": read behind the field's name."""
    parts: tuple[Array, ...]
    """float64 shape (rows looked at,) of each shard."""
    rows: tuple[Array, ...]
    """int64: which rows they are."""
    measured: bool = False
    """Whether it is the value itself, which has a unit."""
    pairs: tuple[Array, ...] = ()
    """Of a fit, float64 shape (rows looked at, 2) of each shard: what the other fields say, the value, as scores."""


def statistics_of(group: Sequence[Shard], fields: Sequence[str], labels: Sequence[str]) -> Iterator[Statistic]:
    """Every statistic that all shards of a group have and that varies."""
    for name in fields:
        columns = [s.columns[name] for s in group if name in s.columns]
        if len(columns) < len(group) or name in labels or any(_numbers_rows(c) for c in columns):
            continue
        if name == "bytes" and all(s.format == "pictures" for s in group):
            continue  # of a packed picture that follows what it shows
        rows = [_looked_at(c) for c in columns]
        made = [dict(_of(c, r)) for c, r in zip(columns, rows, strict=True)]
        for told in made[0]:
            parts = tuple(m.get(told, np.empty(0)) for m in made)
            if all(len(p) == len(r) for p, r in zip(parts, rows, strict=True)):
                yield Statistic(name, told, parts, tuple(rows), told.startswith(("the value", "feature")))
        if all(is_tokens(c) for c in columns):
            yield from usual(name, columns, rows)
    yield from of_streams(group)
    yield from _tops(group)
    yield from _sides(group)
    inputs = [n for n in fields if all(n in s.columns and not _numbers_rows(s.columns[n]) for s in group)]
    for name, told, pairs, rows_of in fits(group, inputs, labels):
        yield Statistic(name, told, tuple(np.abs(p[:, 0] - p[:, 1]) for p in pairs), rows_of, pairs=pairs)


def _numbers_rows(column: Column) -> bool:
    return is_identifier(column) or is_id_name(column.name) or is_time(column.name) or is_group(column.name)


def _looked_at(column: Column) -> Array:
    width = max(1, int(np.prod(column.row_shape)))
    return np.arange(0, column.rows, max(1, -(-column.rows // max(64, min(MOST_ROWS, MOST_VALUES // width)))))


def is_tokens(column: Column) -> bool:
    """Whether rows are sequences of whole numbers whose size says nothing."""
    if column.kind == "sequence":
        return column.is_integer
    wide = column.kind == "number" and len(column.row_shape) == 1 and column.row_shape[0] >= TOKENS
    return wide and column.values.dtype.kind in "iu" and column.values.dtype.itemsize > 1 and (
        is_padded(column) or _of_a_vocabulary(column.values))


def _of_a_vocabulary(values: Array) -> bool:
    """Whether neighbours are as far from each other as any two values, and none is negative."""
    some = np.asarray(values[:: max(1, len(values) // 200)], np.float64)
    steps, spread = np.abs(np.diff(some, axis=1)), np.abs(some[:, 1:] - np.roll(some, 1, axis=0)[:, :-1])
    return bool(some.min() >= 0) and len(np.unique(some)) > 50 and float(steps.mean()) > 0.8 * float(spread.mean())


def _of(column: Column, rows: Array) -> Iterator[tuple[str, Array]]:
    if column.kind == "text":
        if column.texts and column.rows == len(column.texts):
            yield from text_statistics([column.texts[i] for i in rows])
    elif column.kind == "sequence" or is_tokens(column):
        return
    elif not column.row_shape:
        yield "the value", _numbers(column.values[rows])
    else:
        yield from _of_arrays(_numbers(column.values[rows]))


def _numbers(values: Array) -> Array:
    return np.asarray(values, np.float64)


def _of_arrays(values: Array) -> Iterator[tuple[str, Array]]:
    flat = values.reshape(len(values), -1)
    long = [a for a in range(1, values.ndim) if values.shape[a] >= SIGNAL]
    if flat.shape[1] <= MOST_FEATURES and len(long) < 2:
        for k in range(flat.shape[1]):
            yield f"feature {k}", flat[:, k]
    if not long:
        return
    mean, std = np.nanmean(flat, axis=1), np.nanstd(flat, axis=1)
    yield "its level", mean
    yield "its spread", np.log(std + 1e-9 * (1.0 + np.abs(mean)))
    steps = np.diff(values, axis=long[-1]).reshape(len(values), -1)
    yield "its roughness (steps from neighbour to neighbour against its spread)", np.log(
        (np.nanstd(steps, axis=1) + 1e-9) / (std + 1e-9))
    yield "the share that stays at its own largest and smallest value", _at_ends(flat)
    yield from _of_halves(values, long, std)
    yield from _of_channels(values, long)


def _at_ends(flat: Array) -> Array:
    high, low = np.nanmax(flat, axis=1, keepdims=True), np.nanmin(flat, axis=1, keepdims=True)
    return np.asarray(((flat == high) | (flat == low)).mean(axis=1))


def _of_halves(values: Array, long: Sequence[int], std: Array) -> Iterator[tuple[str, Array]]:
    scale = std + 1e-9
    channel = [a for a in range(1, values.ndim) if a not in long and 2 <= values.shape[a] <= 4]
    if len(channel) == 1 and len(long) == 2:
        means = values.mean(axis=tuple(long))
        yield "the last channel against the first", (means[:, -1] - means[:, 0]) / scale
    if len(long) == 2:
        names = ("the upper half against the lower", "the left half against the right")
        for axis, told in zip(long, names, strict=True):
            first, second = np.array_split(np.moveaxis(values, axis, 1), 2, axis=1)
            yield told, (first.reshape(len(values), -1).mean(axis=1)
                         - second.reshape(len(values), -1).mean(axis=1)) / scale


def _of_channels(values: Array, long: Sequence[int]) -> Iterator[tuple[str, Array]]:
    """How neighbouring channels of a signal go together, and which of them is the larger one."""
    short = [a for a in range(1, values.ndim) if 2 <= values.shape[a] <= CHANNELS]
    if len(short) != 1 or len(long) != 1 or values.ndim != 3:
        return
    channels = np.moveaxis(values, short[0], 1)
    around = channels - channels.mean(axis=2, keepdims=True)
    sizes = np.sqrt((around**2).mean(axis=2))
    for k in range(channels.shape[1] - 1):
        both = np.maximum(1e-12, sizes[:, k] * sizes[:, k + 1])
        yield f"how channel {k} and channel {k + 1} go together (correlation)", (
            around[:, k] * around[:, k + 1]).mean(axis=1) / both
        yield f"the spread of channel {k} against channel {k + 1}", np.log(
            (sizes[:, k] + 1e-9) / (sizes[:, k + 1] + 1e-9))


def usual(name: str, columns: Sequence[Column], rows: Sequence[Array], names: Sequence[Array] | None = None
          ) -> Iterator[Statistic]:
    """Of tokens, how usual they are: the mean logarithm of their share in all shards; and of pairs in the other shards.

    `names`: which rows of the file the rows are called, where they are no rows of it.
    """
    high = max(int(c.values.max(initial=0)) for c in columns)
    low = min(int(c.values.min(initial=0)) for c in columns)
    size = sum(c.values.size for c in columns)
    if high > 2**20 or low < -100 or size > 2**25 or (low >= 0 and high <= 1):  # zeros and ones are a mask
        return
    called = tuple(rows if names is None else names)
    ids = [c.values.reshape(-1).astype(np.int64) + 100 for c in columns]
    counts = np.sum([np.bincount(i, minlength=high + 101) for i in ids], axis=0).astype(np.float64)
    logs = np.log((counts + 0.5) / float(counts.sum()))
    parts = tuple(_of_rows(c, logs, i, r) for c, i, r in zip(columns, ids, rows, strict=True))
    yield Statistic(name, "how usual its tokens are", parts, called)
    if len(columns) >= FEWEST_SHARDS and size <= MOST_PAIRS:
        hashed = [_pairs(i) for i in ids]
        seen = [np.bincount(h, minlength=PAIRS) for h in hashed]
        total = np.sum(seen, axis=0)
        scores = [np.log(total[h] - own[h] + 0.5) - logs[i] for h, own, i in zip(hashed, seen, ids, strict=True)]
        pairs = tuple(_by_row(c, v)[r] for c, v, r in zip(columns, scores, rows, strict=True))
        yield Statistic(name, "how usual its pairs of neighbouring tokens are in the other files", pairs, called)


def _pairs(ids: Array) -> Array:
    """int64 shape (tokens,): a place for each token with the one before it; the first has itself before it."""
    before = np.concatenate([ids[:1], ids[:-1]])
    return np.asarray((mixed((before * 2654435761 + ids).view(np.uint64)) % np.uint64(PAIRS)).astype(np.int64))


def of_streams(group: Sequence[Shard]) -> Iterator[Statistic]:
    """Of files that are one stream of tokens, the same of blocks of `BLOCK` tokens."""
    for name in group[0].columns:
        columns = [s.columns.get(name) for s in group]
        if not all(c is not None and s.format.startswith("tokens") and c.rows >= BLOCK
                   for c, s in zip(columns, group, strict=True)):
            continue
        blocks = [replace(c, values=np.asarray(c.values[: c.rows // BLOCK * BLOCK]).reshape(-1, BLOCK))
                  for c in columns if c is not None]
        rows = [_looked_at(c) for c in blocks]
        yield from usual(name, blocks, rows, [r * BLOCK for r in rows])


def _of_rows(column: Column, logs: Array, ids: Array, rows: Array) -> Array:
    """The mean of what is said of the tokens of each of these rows; of rows of one length no others are looked at."""
    if column.offsets is None:
        return np.asarray(logs[ids.reshape(column.rows, -1)[rows]].mean(axis=1))
    return _by_row(column, logs[ids])[rows]


def _by_row(column: Column, values: Array) -> Array:
    if column.offsets is None:
        return np.asarray(values.reshape(column.rows, -1).mean(axis=1))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    lengths = np.maximum(1, np.diff(column.offsets))
    return np.asarray((sums[column.offsets[1:]] - sums[column.offsets[:-1]]) / lengths)


def _sides(group: Sequence[Shard]) -> Iterator[Statistic]:
    """Of sounds of two channels, how they go together and which is the louder one."""
    sides = [s.left_right for s in group]
    if any(t is None or np.isfinite(t).all(axis=1).sum() < 0.9 * max(1, len(t)) for t in sides):
        return
    rows = tuple(np.flatnonzero(np.isfinite(t).all(axis=1)) for t in sides if t is not None)
    told = ("how left and right go together (correlation)", "the spread of left against right")
    for k, said in enumerate(told):
        yield Statistic("the sound", said, tuple(t[r, k] for t, r in zip(sides, rows, strict=True) if t is not None),
                        rows)


def _tops(group: Sequence[Shard]) -> Iterator[Statistic]:
    """Of sounds, how flat they are at their extreme."""
    tops = [s.flat_tops for s in group]
    if any(t is None or not len(t) or np.isnan(t).any() for t in tops):
        return
    rows = tuple(np.arange(len(t)) for t in tops if t is not None)
    for k, told in enumerate(("the extreme as a share of full scale", "how flat it is at its extreme: it is clipped")):
        yield Statistic("the sound", told, tuple(np.asarray(t[:, k]) for t in tops if t is not None), rows)
