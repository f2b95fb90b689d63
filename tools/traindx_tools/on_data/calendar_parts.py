"""What a time says of its row: hour, day of the week, month; read from numbers of any unit and from texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.times import times_at

EARLIEST, LATEST = 6e8, 4.1e9
"""Seconds since 1970 that are times of records: 1989 to 2099."""
UNITS = (1.0, 1e3, 1e6, 1e9)
FROM_1900 = 2_208_988_800
"""Seconds from 1900 to 1970."""
DAY = 86_400


def seconds_of(column: Column, rows: Array) -> Array | None:
    """int64 shape (len(rows),): seconds since 1970 of these rows; None where the field holds no times of records."""
    if column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iuf":
        values = np.asarray(column.values[rows], np.float64)
        for unit in UNITS if np.isfinite(values).all() else ():
            if len(values) and EARLIEST * unit <= values.min() and values.max() <= LATEST * unit:
                return np.asarray(np.floor(values / unit), np.int64)
        return None
    if column.kind != "text" or len(column.texts) < column.rows:
        return None
    found = times_at(column, rows)
    if found is None or not np.isfinite(found).all() or found.min() < EARLIEST:
        return None
    return np.asarray(np.floor(found - FROM_1900), np.int64)


def parts_of(seconds: Array) -> Iterator[tuple[str, Array]]:
    """What a time determines, by name: int64 shape (rows,) each."""
    days = seconds // DAY
    months = (days * DAY).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    yield "the day of the week", (days + 3) % 7
    yield "the hour", seconds % DAY // 3600
    yield "the month", months % 12 + 1
    yield "the day of the month", days - first + 1
    yield "the minute", seconds % 3600 // 60
    yield "the year", months // 12 + 1970
