"""Numbers of all rows of a split one behind the other, with what orders them: what is asked of groups over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_epoch, is_id_name, is_identifier, is_row_id, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.times import times_at

MOST_ROWS = 20_000
"""Rows of all files together: of more, as many are drawn, since an even step would pass by whole groups."""
MOST_FEATURES = 32
"""Numbers of a row that are looked at."""
FEWEST_VALUES = 8
"""Distinct values from which on a number measures something."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows of all files of a split, in the order of the files."""

    shard: Array
    """int64 shape (rows,)."""
    row: Array
    """int64 shape (rows,): which row of its file."""
    time: str
    """The field that orders them, "" where none does."""
    key: Array
    """float64 shape (rows,): their times, or their places in the files."""


def panel_of(group: Sequence[Shard]) -> Panel:
    """The rows of all files, drawn where they are many."""
    ends = np.cumsum([s.rows for s in group])
    rows = int(ends[-1])
    some = np.arange(rows) if rows <= MOST_ROWS else np.sort(
        np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    shard = np.searchsorted(ends, some, "right")
    row = some - (ends - [s.rows for s in group])[shard]
    for name in group[0].columns:
        columns = [c for s in group if (c := s.columns.get(name)) is not None and is_moment(c)]
        if len(columns) == len(group):
            times = [times_at(c, row[shard == i]) for i, c in enumerate(columns)]
            parts = [t for t in times if t is not None and np.isfinite(t).all()]
            if len(parts) == len(group) and len(np.unique(np.concatenate(parts))) > 1:
                return Panel(shard, row, name, np.concatenate(parts))
    return Panel(shard, row, "", np.arange(len(row), dtype=np.float64))


def is_moment(column: Column) -> bool:
    """Whether a field tells when a row was: by its name, or as seconds since 1970."""
    if column.kind == "text":
        return bool(column.texts) and len(column.texts) == column.rows and times_at(
            column, np.arange(0, column.rows, max(1, column.rows // 50))) is not None
    if column.kind != "number" or column.row_shape or column.missing is not None or not column.rows:
        return False
    if is_time(column.name):
        return column.values.dtype.kind in "iuf"
    some = np.asarray(column.values[:: max(1, column.rows // 200)], np.float64)
    return len(some) > 1 and bool(np.isfinite(some).all()) and is_epoch(some)


def measures(group: Sequence[Shard], panel: Panel, labels: Sequence[str]) -> Iterator[tuple[str, str, Array]]:
    """Field, what it is ("" or `feature 3`), and its values at the rows: numbers that measure something."""
    made = 0
    for name in group[0].columns:
        columns = [s.columns.get(name) for s in group]
        width = _width(columns, group)
        if width is None or name in labels or name == panel.time or made + width > MOST_FEATURES:
            continue
        made += width
        values = np.concatenate([np.asarray(c.values[panel.row[panel.shard == i]], np.float64).reshape(-1, width)
                                 for i, c in enumerate(columns) if c is not None])
        for k in range(width):
            if len(np.unique(values[:, k][:2000])) >= FEWEST_VALUES:
                yield name, f"feature {k}" if width > 1 else "", values[:, k]


def _width(columns: Sequence[Column | None], group: Sequence[Shard]) -> int | None:
    widths = set()
    for column, shard in zip(columns, group, strict=True):
        if column is None or column.kind != "number" or column.rows != shard.rows or len(column.row_shape) > 1:
            return None
        if column.values.dtype.kind not in "iuf" or is_row_id(column) or is_id_name(column.name) or (
            is_time(column.name) or (not column.row_shape and is_identifier(column))):
            return None
        widths.add(int(np.prod(column.row_shape)))
    return widths.pop() if len(widths) == 1 and 1 <= max(widths) <= MOST_FEATURES else None
