"""Two sequences of the same rows of which one is the other moved by some places, or turned around: which move, by row.

Labels are the ids of their row, or those moved by one; a target is its source reversed. Only places are asked at which
the id differs from both neighbours, so that runs and padding fit no move, and places that the second one leaves out
(numbers below zero) say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard

REACH = 4
REVERSED = 99
"""How a sequence that is turned around is called among the moves."""
MOVES = (*range(-REACH, REACH + 1), REVERSED)
AGREE = 0.95
"""Share of the places of a row that agree, where a move is its own."""
APART = 0.6
"""The same of any other move, at most: else ids recur, and more than one move fits."""
FEWEST_PLACES = 4
MOST_ROWS, FEWEST_ROWS = 6000, 60
"""Rows of all files together, and of each file at least."""
LONGEST = 1024
MOST_FIELDS = 6


@dataclass(frozen=True, eq=False)
class Moves:
    """Field `second` against `first`. `moves`: int64 shape (rows,) of each shard, -1000 where no move fits, 1000 where
    the row says nothing; `rows`: which rows they are."""

    first: str
    second: str
    rows: tuple[Array, ...]
    moves: tuple[Array, ...]


NONE, UNTOLD = -1000, 1000


def moves_of(group: Sequence[Shard]) -> Iterator[Moves]:
    """Every pair of fields of whole numbers that are as long as each other in every row."""
    names = [n for n in group[0].columns if all(_is_sequence(s.columns.get(n)) for s in group)][:MOST_FIELDS]
    most = max(FEWEST_ROWS, MOST_ROWS // len(group))
    rows = tuple(np.unique(np.linspace(0, s.rows - 1, min(s.rows, most)).astype(np.int64)) for s in group)
    for first in names:
        for second in (n for n in names if n != first):
            if all(_same_lengths(s.columns[first], s.columns[second]) for s in group):
                told = tuple(np.array([_move(_items(s.columns[first], i), _items(s.columns[second], i)) for i in r],
                                      np.int64) for s, r in zip(group, rows, strict=True))
                yield Moves(first, second, rows, told)


def _is_sequence(column: Column | None) -> bool:
    return column is not None and column.values.dtype.kind in "iu" and column.inner == 1 and (
        column.kind == "sequence" or (column.kind == "number" and len(column.row_shape) == 1
                                      and column.row_shape[0] >= 2 * FEWEST_PLACES))


def _same_lengths(one: Column, other: Column) -> bool:
    if one.offsets is None or other.offsets is None:
        return one.offsets is other.offsets and one.row_shape == other.row_shape
    return len(one.offsets) == len(other.offsets) and bool((one.offsets == other.offsets).all())


def _items(column: Column, row: int) -> Array:
    if column.offsets is None:
        return np.asarray(column.values[row, :LONGEST])
    return np.asarray(column.values[column.offsets[row]:column.offsets[row + 1]][:LONGEST])


def _move(ids: Array, labels: Array) -> int:
    """By how many places the labels stand too early (negative: too late) against the ids of a row."""
    if len(ids) < 2 * FEWEST_PLACES or len(labels) != len(ids):
        return UNTOLD
    telling = np.ones(len(ids), bool)
    telling[1:] &= ids[1:] != ids[:-1]
    telling[:-1] &= ids[1:] != ids[:-1]
    kept = labels >= 0
    best, second = (0.0, UNTOLD), 0.0
    for move in MOVES:
        share = _agreeing(ids, labels, telling, kept, move)
        if share is None:
            continue
        if share > best[0]:
            best, second = (share, move), best[0]
        else:
            second = max(second, share)
    if best[1] == UNTOLD and not kept.any():
        return UNTOLD
    if best[0] < AGREE:
        return NONE if best[1] != UNTOLD else UNTOLD
    return best[1] if second <= APART else UNTOLD


def _agreeing(ids: Array, labels: Array, telling: Array, kept: Array, move: int) -> float | None:
    """Share of the telling places that agree after a move; None where there are too few."""
    if move == REVERSED:
        a, b = slice(None, None, -1), slice(None)
    else:
        a = slice(max(0, move), len(ids) + min(0, move))
        b = slice(max(0, -move), len(ids) - max(0, move))
    there = telling[a] & kept[b]
    places = np.count_nonzero(there)
    return float(np.count_nonzero((ids[a] == labels[b]) & there) / places) if places >= FEWEST_PLACES else None
