"""Two times of each row, of one table or of two that an id joins, and how often the one lies behind the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.panels import is_moment
from traindx_tools.on_data.roles import is_id_name, is_row_id, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.times import times_at
from traindx_tools.on_data.view import View

MOST_TIMES = 8
"""Fields of times of a table."""
FEWEST = 200
"""Rows that have both times."""
MOST_PARSED = 40_000
"""Texts of a field of all files that are read as times."""
EPOCH = 9.4e8
"""Seconds since 1970 in 1999: constants below it are any numbers."""
JOINED = 0.8
"""Of the ids, those that the other table has."""


@dataclass(frozen=True, eq=False)
class Times:
    """A field of times: float64 shape (rows,) of each shard of a set, NaN where a cell is empty."""

    name: str
    parts: tuple[Array, ...]
    file: str
    """The file that holds it, "" of the table itself."""


def times_in(view: View, group: Sequence[Shard]) -> list[Times]:
    """The times of a set's rows, and those of another table that has one row for each id of this one."""
    own = list(_own(group))
    return [*own, *_joined(view, group)] if own else []


def _own(group: Sequence[Shard]) -> Iterator[Times]:
    names = [n for n in group[0].columns if all(n in s.columns for s in group)]
    found: dict[str, tuple[Array, ...]] = {}
    for name in names:
        parts = [_times(s.columns[name], len(group)) for s in group]
        if len(found) < MOST_TIMES and all(p is not None for p in parts):
            found[name] = tuple(p for p in parts if p is not None)
    yield from (Times(n, p, "") for n, p in found.items())
    ranges = [(np.nanmin(v), np.nanmax(v)) for p in found.values() if np.isfinite(v := np.concatenate(p)).any()]
    for name in names:  # numbers on the scale of a time are times whatever they are called
        columns = [s.columns[name] for s in group]
        if name in found or not all(c.kind == "number" and not c.row_shape and c.values.dtype.kind in "if"
                                    and not is_row_id(c) for c in columns):
            continue
        values = [_numbers(c) for c in columns]
        every = np.concatenate(values)
        some = every[np.isfinite(every)]
        if len(some) and any(_same_scale(some, low, high) for low, high in ranges):
            yield Times(name, tuple(values), "")


def _same_scale(values: Array, low: float, high: float) -> bool:
    """Whether numbers lie within the time that another field covers, or as long before or behind, and fill a tenth."""
    span = high - low
    inner = np.quantile(values, [0.02, 0.98])
    if inner[0] == inner[1] and inner[0] > EPOCH:
        return bool(low <= inner[0] <= high + span)
    return bool(span > 0 and inner[0] >= low - span and inner[1] <= high + span and inner[1] - inner[0] >= 0.1 * span
                and (low > 2 * span or abs(float(np.median(values)) - (low + high) / 2) < 0.5 * span)
                and len(np.unique(values[:2000])) >= 20)


def _times(column: Column, shards: int) -> Array | None:
    if column.kind == "text":
        return _of_texts(column, shards)
    if column.kind != "number" or column.row_shape or column.values.dtype.kind not in "iuf":
        return None
    whole = column if column.missing is None else Column(column.name, "number", column.values[~column.missing],
                                                         column.file)
    return _numbers(column) if whole.rows and is_moment(whole) else None


def _numbers(column: Column) -> Array:
    values = np.asarray(column.values, np.float64).reshape(-1)
    return values if column.missing is None else np.where(column.missing, np.nan, values)


def _of_texts(column: Column, shards: int) -> Array | None:
    """The times of texts, of some rows where they are many: the others are NaN."""
    if len(column.texts) != column.rows:
        return None
    step = max(1, -(-column.rows * shards // MOST_PARSED))
    filled = np.array([i for i in range(0, column.rows, step) if column.texts[i].strip()], np.int64)
    if len(filled) < max(8, 0.02 * column.rows / step):
        return None
    some = {column.texts[i] for i in filled[:: max(1, len(filled) // 50)]}
    if len(some) == 1 and len({column.texts[i] for i in filled}) == 1:
        return _constant(some.pop(), filled, column.rows)
    times = times_at(column, filled)
    if times is None:
        return None
    out = np.full(column.rows, np.nan)
    out[filled] = times
    return out


def _constant(text: str, filled: Array, rows: int) -> Array | None:
    """A date that all rows share, such as the beginning of the label's window."""
    try:
        since = datetime.fromisoformat(text.strip()).replace(tzinfo=None) - datetime(1900, 1, 1)
    except ValueError:
        return None
    out = np.full(rows, np.nan)
    out[filled] = since.total_seconds()
    return out


def _joined(view: View, group: Sequence[Shard]) -> Iterator[Times]:
    """Times of a table of one file in the same folder, by an id that both call alike and that it holds once."""
    folders = {os.path.dirname(s.name) for s in group}
    ids = [n for n in group[0].columns if all(n in s.columns and _is_key(s.columns[n]) for s in group)]
    for other in (d.shards[0] for d in view.sets if len(d.shards) == 1) if ids else ():
        if any(other is s for s in group) or os.path.dirname(other.name) not in folders:
            continue
        name = next((n for n in ids if n in other.columns and _is_key(other.columns[n])
                     and other.columns[n].kind == group[0].columns[n].kind), "")
        if not name:
            continue
        kinds, first = np.unique(keys(other.columns[name]), return_index=True)
        if len(kinds) < other.rows:
            continue
        places = [np.minimum(np.searchsorted(kinds, keys(s.columns[name])), len(kinds) - 1) for s in group]
        known = [kinds[p] == keys(s.columns[name]) for p, s in zip(places, group, strict=True)]
        if float(np.concatenate(known).mean()) < JOINED:
            continue
        for field in list(_own([other])):
            parts = tuple(np.where(k, field.parts[0][first[p]], np.nan) for p, k in zip(places, known, strict=True))
            yield Times(field.name, parts, other.name)


def _is_key(column: Column) -> bool:
    if column.missing is not None or column.row_shape or not (is_id_name(column.name) or is_row_id(column)):
        return False
    return (column.kind == "text" and column.digests is not None) or (
        column.kind == "number" and column.values.dtype.kind in "iu")
