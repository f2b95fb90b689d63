"""Stretches of a stream of tokens that stand in another stream as well, in the same order.

A stream has no rows to compare: what stands in both is told by windows. Those are compared that begin where a hash of
four tokens says so, which is the same in both streams wherever the stretch begins (Manber, "Finding similar files in a
large file system", 1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import distinct, mixed

WINDOW, BEGINS, ONE_IN = 64, 4, 32
DIFFERENT = 8
"""Tokens of a window that differ from each other: padding and silence recur by nature."""
FEWEST = 4096
AT_ONCE = 2**20
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Windows:
    """Where windows of a stream begin, and a hash of each."""

    begins: Array
    digests: Array


@dataclass(frozen=True)
class Stretch:
    """The longest stretch of one stream in another one, and how much of the stream stands there at all."""

    begin: int
    there: int
    length: int
    share: float
    windows: int
    """That stand in the other stream."""


def stream_of(shard: Shard) -> Column | None:
    """The only field of a shard, where it holds one whole number a row."""
    columns = list(shard.columns.values())
    if len(columns) != 1 or shard.rows < FEWEST or columns[0].kind != "number" or columns[0].is_float:
        return None
    return None if columns[0].row_shape else columns[0]


def windows_of(column: Column) -> Windows:
    """The windows of a stream that hold different tokens, and do not only count up or down."""
    begins, digests = [], []
    for start in range(0, column.rows, AT_ONCE):
        part = np.asarray(column.values[start : start + AT_ONCE + WINDOW]).astype(np.uint64)
        count = min(AT_ONCE, len(part) - WINDOW + 1)
        if count <= 0:
            break
        at = np.flatnonzero(_hashed(part, np.arange(count), BEGINS) % np.uint64(ONE_IN) == 0)
        at = at[_tell(part[at[:, None] + np.arange(WINDOW)])]
        begins.append(at + start)
        digests.append(_hashed(part, at, WINDOW))
    empty = np.empty(0, np.int64)
    return Windows(np.concatenate(begins or [empty]), np.concatenate(digests or [empty.astype(np.uint64)]))


def _hashed(tokens: Array, at: Array, length: int) -> Array:
    made = np.zeros(len(at), np.uint64)
    with np.errstate(over="ignore"):
        for k in range(length):
            made = (made + tokens[at + k]) * _FACTOR
    return mixed(made)


def _tell(windows: Array) -> Array:
    rises = windows[:, 1:] > windows[:, :-1]
    falls = windows[:, 1:] < windows[:, :-1]
    different = (np.diff(np.sort(windows, axis=1), axis=1) != 0).sum(axis=1) + 1
    return np.asarray((different >= DIFFERENT) & rises.any(axis=1) & falls.any(axis=1))


def recurring(windows: Windows) -> float:
    """Share of the windows that stand in their own stream more than once: what is quoted by nature."""
    counts = np.unique(windows.digests, return_counts=True)[1]
    return float(counts[counts > 1].sum() / max(1, len(windows.digests)))


def longest_stretch(own: Windows, other: Windows) -> Stretch | None:
    """The longest stretch of windows of one stream that stand behind each other in the other one too."""
    order = np.argsort(other.digests, kind="stable")
    ordered = other.digests[order]
    if not len(ordered) or not len(own.digests):
        return None
    place = np.minimum(np.searchsorted(ordered, own.digests), len(ordered) - 1)
    hits = np.flatnonzero(ordered[place] == own.digests)
    if not len(hits):
        return None
    begins, there = own.begins[hits], other.begins[order[place[hits]]]
    ends = np.flatnonzero(np.append(np.diff(begins - there) != 0, True))
    starts = np.append(0, ends[:-1] + 1)
    lengths = begins[ends] - begins[starts] + WINDOW
    best = int(np.argmax(lengths))
    return Stretch(int(begins[starts[best]]), int(there[starts[best]]), int(lengths[best]),
                   len(hits) / len(own.digests), len(distinct(own.digests[hits])))


def streams_by_split(shards: tuple[Shard, ...] | list[Shard]) -> Iterator[tuple[Shard, Shard, Stretch, float]]:
    """Each held-out stream and the training stream that holds the longest stretch of it, and what recurs anyway."""
    streams = [(s, c) for s in shards if (c := stream_of(s)) is not None]
    train = [(s, c) for s, c in streams if s.split == "train"]
    held = [(s, c) for s, c in streams if s.split not in ("", "train")]
    if not train or not held:
        return
    made = [(s, windows_of(c)) for s, c in train]
    natural = max(recurring(w) for _, w in made)
    for shard, column in held:
        own = windows_of(column)
        found = [(s, stretch) for s, w in made if (stretch := longest_stretch(own, w)) is not None]
        if found:
            source, stretch = max(found, key=lambda f: f[1].length)
            yield shard, source, stretch, max(natural, recurring(own))
