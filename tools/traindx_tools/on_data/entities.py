"""Files that are one entity each (a stock, a sensor, a customer, a site, a recording), and not shards of one stream.

Each has its own level, scale and number of rows by nature. Among them only the ratio of two units, a sign or another
form tells of a fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.names import number_of, words_only
from traindx_tools.on_data.places import short
from traindx_tools.on_data.repairs import FACTORS
from traindx_tools.on_data.roles import is_epoch, is_identifier, is_row_id, is_time
from traindx_tools.on_data.shard import Shard

FEWEST = 3
OWN_LEVEL = 5.0
"""Standard errors that the level of the typical file is from that of the middle one: of one stream it is below 1."""
RECORDINGS, LONGEST, LOOKED = 8, 20_000, 24
"""Files that may be recordings, rows of the longest, and files that are looked at."""
OF_MANY_LENGTHS = 0.05
"""Spread of their lengths over the mean: days of a month spread by 0.03."""
SERIES = 0.6
"""Correlation of neighbours in a series."""
MOST_FIELDS = 40
OVERLAP = 0.3
"""Share of the shorter of two spans of time."""
WITHIN = 0.03
NARROW = 0.2
"""Range of the other levels, as logarithms, over that of the ratio of two units that can be told among them."""


def are_entities(group: Sequence[Shard]) -> bool:
    """Whether files have levels of their own, and names without a number, times that overlap, or own lengths."""
    if len(group) < FEWEST or not _own_levels(group):
        return False
    return _names_of_their_own(group) or _overlap(group) or are_recordings(group)


def are_recordings(group: Sequence[Shard]) -> bool:
    """Whether files are episodes: many short series, each as long as it took, in which neighbours are alike."""
    lengths = np.array([s.rows for s in group])
    if len(group) < RECORDINGS or lengths.max() > LONGEST or len(np.unique(lengths)) < len(group) / 3:
        return False
    if float(lengths.std()) < OF_MANY_LENGTHS * float(lengths.mean()):
        return False
    near = [n for s in group[:: max(1, len(group) // LOOKED)] for c in list(s.columns.values())[:MOST_FIELDS]
            if _measures(c) and len(c.row_shape) < 2 and (n := _neighbours(c.values)) is not None]
    return bool(near) and float(np.median(near)) >= SERIES


def _neighbours(values: Array) -> float | None:
    """The usual correlation of a number with that of the next row; None of a column that is constant."""
    flat = np.asarray(values, np.float64).reshape(len(values), -1)
    around = flat - flat.mean(axis=0)
    size = (around**2).sum(axis=0)
    moves = np.isfinite(size) & (size > 1e-12 * (flat**2).sum(axis=0)) & (size > 0)
    if not moves.any():
        return None
    return float(np.median((around[1:] * around[:-1]).sum(axis=0)[moves] / size[moves]))


def _names_of_their_own(group: Sequence[Shard]) -> bool:
    stems = [Path(short(s)).stem for s in group]
    words = {words_only(s) for s in stems}
    return len(words) == len(group) and not any(number_of(s) for s in stems) and all(words)


def _own_levels(group: Sequence[Shard]) -> bool:
    """Whether in half of the fields most files differ in level by more than rows drawn at random do."""
    told = []
    for name in list(group[0].columns)[:MOST_FIELDS]:
        columns = [s.columns.get(name) for s in group]
        if not all(c is not None and _measures(c) for c in columns):
            continue
        seen = [s.summaries[name] for s in group]
        mean, std = np.array([s.mean for s in seen]), np.array([s.std for s in seen])
        if np.isfinite(mean).all() and np.isfinite(std).all() and float(np.median(std)) > 0:
            away = np.abs(mean - np.median(mean)) / (np.median(std) / np.sqrt([max(1, s.rows) for s in group]))
            told.append(float(np.median(away)) > OWN_LEVEL)
    return bool(told) and sum(told) >= 0.5 * len(told)


def _measures(column: Column) -> bool:
    return (column.kind == "number" and column.values.dtype.kind in "iuf" and column.rows > 0
            and not is_row_id(column) and not is_time(column.name) and not is_identifier(column))


def _overlap(group: Sequence[Shard]) -> bool:
    """Whether most files lie in the time of others: of one stream each follows the other."""
    for name in group[0].columns:
        spans = [_span(s.columns.get(name)) for s in group]
        if not all(spans):
            continue
        known = sorted(s for s in spans if s is not None)
        pairs = [(a, b) for k, a in enumerate(known) for b in known[k + 1 :]]
        over = [min(a[1], b[1]) - max(a[0], b[0]) > OVERLAP * min(a[1] - a[0], b[1] - b[0]) for a, b in pairs]
        return sum(over) > 0.7 * len(over)
    return False


def _span(column: Column | None) -> tuple[float, float] | None:
    """The first and the last moment of a field of times, in whatever unit; None of any other field."""
    if column is None or not column.rows or column.row_shape:
        return None
    if column.kind == "number" and column.values.dtype.kind in "iuf" and column.missing is None:
        values = column.values.astype(np.float64)
        if np.isfinite(values).all() and (is_time(column.name) or is_epoch(values)):
            return (float(values.min()), float(values.max())) if values.max() > values.min() else None
    if column.kind == "text" and column.texts and is_time(column.name):
        return _moments(column.texts)
    return None


def _moments(texts: Sequence[str]) -> tuple[float, float] | None:
    from datetime import datetime

    try:
        found = [datetime.fromisoformat(t.strip().replace("/", "-")).timestamp()
                 for t in (texts[0], texts[len(texts) // 2], texts[-1])]
    except (ValueError, OverflowError, OSError):
        return None
    return (min(found), max(found)) if max(found) > min(found) else None


def unit_apart(levels: Array, index: int, noise: float = 0.0) -> tuple[float, str] | None:
    """The ratio of two units by which one level (positive) is off among levels of their own; None where none is.

    The others must lie close together for that ratio: what entities differ by must not reach it. `noise`: how far
    sampling moves the logarithm of a level.
    """
    rest = np.delete(levels, index)
    if len(rest) < 2 or not (levels > 0).all() or not np.isfinite(levels).all():
        return None
    logs = np.log(rest)
    wide, away = float(np.ptp(logs)), math.log(levels[index]) - float(np.median(logs))
    found = [(abs(abs(away) - math.log(f)), f, told) for f, told in FACTORS.items() if wide < NARROW * math.log(f)]
    if not found:
        return None
    off, factor, told = min(found)
    return ((factor if away > 0 else 1.0 / factor), told) if off <= max(WITHIN, 0.25 * wide, noise) else None
