"""Rows that are padding from end to end, and whether they were meant so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_label, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

IGNORE = -100
WORDS, SOME = 16, 20_000
"""Different values of a column of texts up to which it is a flag or a remark, whose empty cells are no padding."""

MOST_EMPTY = 0.5
"""Share of empty cells above which a column of texts is one that few rows need."""


@dataclass(frozen=True, eq=False)
class Padded:
    """The rows, by which field, the longest run of them and the chance of a run so long."""

    field: str
    rows: Array
    run: tuple[int, int]
    """First row and number of rows."""
    log_chance: float
    labels: tuple[str, ...]
    """Labels that those rows have."""
    one_class: bool
    """Whether one class has nearly all of them: a class of empty documents."""


def padded_rows(data: DataSet, shard: Shard) -> Padded | None:
    """Rows whose mask is 0 throughout, or whose sequence or text is empty, of the first such field."""
    for name, rows in _fields(shard):
        if not len(rows) or len(rows) == shard.rows:
            continue
        labels = _labels(data, shard, rows, name)
        run = longest_run(rows)
        chance = run[1] * math.log(len(rows) / shard.rows) + math.log(shard.rows)
        return Padded(name, rows, run, chance, labels, any(_one_class(shard.columns[n], rows) for n in labels))
    return None


def longest_run(rows: Array) -> tuple[int, int]:
    """The first row and the length of the longest run of consecutive rows."""
    parts = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    longest = max(parts, key=len)
    return int(longest[0]), len(longest)


def _fields(shard: Shard) -> Iterator[tuple[str, Array]]:
    """Masks first: they say what is padding."""
    columns = sorted(shard.columns.items(), key=lambda c: "mask" not in c[0].lower())
    for name, column in columns:
        if column.kind == "text" and column.texts and len(np.unique(keys(column)[:SOME])) > WORDS:
            empty = np.flatnonzero(column.values == 0)
            if len(empty) <= MOST_EMPTY * column.rows:
                yield name, empty
        elif column.kind == "sequence":
            yield name, np.flatnonzero(_all_zero(column) if _is_mask(name, column) else column.lengths == 0)
        elif _is_wide(column) and _is_mask(name, column):
            yield name, np.flatnonzero(~column.values.any(axis=1))


def _is_wide(column: Column) -> bool:
    return column.kind == "number" and len(column.row_shape) == 1 and column.row_shape[0] >= 4


def _is_mask(name: str, column: Column) -> bool:
    """Zeros and ones of a field that is called a mask, or that are ones first and zeros behind in every row."""
    if not column.is_integer and not column.is_float:
        return False
    some = np.asarray(column.values[:200_000] if column.offsets is not None else column.values[:2000])
    if not some.size or not np.isin(some, (0, 1)).all():
        return False
    if "mask" in name.lower():
        return True
    return some.ndim == 2 and bool((np.diff(some.astype(np.int8), axis=1) <= 0).all()) and 0 < float(some.mean()) < 1


def is_mask_of_places(shard: Shard, column: Column) -> bool:
    """Whether a field of wide rows holds whole zeros and ones beside another one of whole numbers of the same shape."""
    if not column.is_integer or not _is_wide(column) or not np.isin(column.values[:2000], (0, 1)).all():
        return False
    return any(c.is_integer and c.name != column.name and c.row_shape == column.row_shape
               and int(c.values[:2000].max(initial=0)) > 1 for c in shard.columns.values())


def pads_from(column: Column, feature: int, value: float) -> bool:
    """Whether a value is padding behind a row's own numbers: where it stands at a place, it does at all later ones."""
    if len(column.row_shape) != 1 or not column.is_integer:
        return False
    here = np.asarray(column.values[:SOME, feature:] == value)
    return bool(here[here[:, 0]].all())


def _all_zero(column: Column) -> Array:
    assert column.offsets is not None
    ones = np.concatenate([[0], np.cumsum(column.values != 0)])
    return np.asarray(ones[column.offsets[1:]] == ones[column.offsets[:-1]])


def _labels(data: DataSet, shard: Shard, rows: Array, name: str) -> tuple[str, ...]:
    """Labels of one number or word, and labels of each position, that are set in most of the rows."""
    out = []
    for other, column in shard.columns.items():
        if other == name:
            continue
        by_row = other in data.labels and is_label(column)
        by_place = "label" in other.lower() and column.is_integer and _is_wide(column)
        if by_row or (by_place and _mostly_set(column, rows)):
            out.append(other)
    return tuple(out)


def _mostly_set(column: Column, rows: Array) -> bool:
    return float((column.values[rows] != IGNORE).any(axis=1).mean()) > 0.5


def _one_class(column: Column, rows: Array) -> bool:
    if column.row_shape:
        return False
    values: Sequence[int] = np.unique(keys(column)[rows], return_counts=True)[1].tolist()
    usual = float(np.unique(keys(column), return_counts=True)[1].max() / column.rows)
    return max(values) >= 0.9 * len(rows) and usual < 0.9
