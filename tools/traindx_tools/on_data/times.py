"""What may be times of rows as numbers: numbers, and texts that are dates and times of day."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

from traindx_tools.on_data.column import Array, Column

MOST = 10_000
"""Rows of a file that are looked at, the first ones: what counts is their order."""
_PATTERNS = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y",
             "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d", "%H:%M:%S", "%H:%M")
_DIGITS = re.compile(r"\d")


def times_of(column: Column) -> Array | None:
    """float64 shape (rows,): the numbers or the times of a field, None where it holds neither. Their order counts."""
    values = times_at(column, np.arange(min(column.rows, MOST)))
    return values if values is not None and np.isfinite(values).all() else None


def times_at(column: Column, rows: Array) -> Array | None:
    """float64 shape (len(rows),): the same of some rows, NaN where numbers are missing."""
    if column.row_shape or column.kind == "sequence":
        return None
    if column.kind == "number":
        return np.asarray(column.values[rows], np.float64)
    return _parsed(tuple(column.texts[i] for i in rows)) if column.texts and len(rows) else None


def _parsed(texts: tuple[str, ...]) -> Array | None:
    first = texts[0].strip()
    if len(_DIGITS.findall(first)) < 3 or len(first) > 40:
        return None
    for pattern in ("", *_PATTERNS):
        try:
            some = [_one(t, pattern) for t in texts[:: max(1, len(texts) // 50)]]
            if len(set(some)) < 2:
                return None
            return np.array([_one(t, pattern) for t in texts])
        except ValueError:
            continue
    return None


def _one(text: str, pattern: str) -> float:
    moment = datetime.strptime(text.strip(), pattern) if pattern else datetime.fromisoformat(text.strip())
    since = moment.replace(tzinfo=None) - (moment.utcoffset() or datetime.min - datetime.min) - datetime(1900, 1, 1)
    return since.total_seconds()
