"""By how many hours the days of a column move when clocks are put forward, and back.

On times that keep one clock through the year, what people do comes an hour earlier in summer, as they follow the clock
on the wall, and what the sun does stays. On times of the wall people stay, and the sun comes an hour later. What both
move comes by a part of an hour the same way. No times let one column of a table come earlier and another one an hour
later: one of both was converted twice, or not at all, in summer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.calendar_parts import DAY, seconds_of
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard

WEEKS = 2
"""Weeks before and behind a change of the clocks that are laid beside each other."""
CHANGES = 3
"""Changes of the clocks, each of which must say the same."""
NEAR, PART = 0.35, 0.3
"""Hours by which a move may be off a whole one, and the least of what depends on both, sun and people."""
CALM = 0.6
"""Of the least move at a change of the clocks, the most at dates four weeks before and behind."""
ALIKE = 0.8
"""Correlation of both mean days once one is moved."""
DAILY = 0.15
"""Spread of the mean day, in spreads of the column, below which it has none."""
FEWEST = 6
"""Rows of each hour on each side."""
REACH = 3
MOST_ROWS, MOST_COLUMNS = 2_000_000, 24


@dataclass(frozen=True, eq=False)
class Moves:
    """Columns whose days come an hour later in summer, and up to an hour earlier; by which field of times, and at how
    many changes of the clocks."""

    time: str
    later: tuple[str, ...]
    earlier: tuple[str, ...]
    stay: tuple[str, ...]
    changes: int
    rules: str
    first: int
    """The first row that lies in summer."""


def moves_of(shard: Shard) -> Moves | None:
    """By the first field of times that tells it."""
    if shard.numbers is not None or shard.rows > MOST_ROWS:
        return None
    for name, column in shard.columns.items():
        if column.rows != shard.rows or column.row_shape or column.kind not in ("number", "text"):
            continue
        seconds = seconds_of(column, np.arange(shard.rows))
        if seconds is None or float(np.ptp(seconds)) < 300 * DAY or not (seconds % DAY).any():
            continue
        for rules, dates in (("European", _europe), ("American", _america)):
            found = _moves(shard, name, seconds, rules, _within(seconds, dates))
            if found is not None:
                return found
    return None


def _within(seconds: Array, dates: object) -> list[tuple[int, bool]]:
    """The changes of the clocks that rows lie around, as days since 1970, and whether summer begins."""
    first, last = int(seconds.min()) // DAY, int(seconds.max()) // DAY
    years = range(1970 + first // 366, 1971 + last // 365)
    assert callable(dates)
    return [(d, begins) for y in years for d, begins in dates(y) if first + 7 * WEEKS <= d <= last - 7 * WEEKS]


def _sunday(year: int, month: int, which: int) -> int:
    """The day of a Sunday of a month since 1970: 1 is the first, -1 the last."""
    start = int((np.datetime64(f"{year:04d}-{month:02d}") + (which < 0)).astype("datetime64[D]").astype(np.int64))
    if which < 0:
        return start - 1 - (start - 1 + 4) % 7
    return start + (3 - start) % 7 + 7 * (which - 1)


def _europe(year: int) -> Iterator[tuple[int, bool]]:
    yield _sunday(year, 3, -1), True
    yield _sunday(year, 10, -1), False


def _america(year: int) -> Iterator[tuple[int, bool]]:
    yield _sunday(year, 3, 2), True
    yield _sunday(year, 11, 1), False


def _moves(shard: Shard, time: str, seconds: Array, rules: str, changes: Sequence[tuple[int, bool]]) -> Moves | None:
    if len(changes) < CHANGES:
        return None
    later, earlier, stay = [], [], []
    days, hours = seconds // DAY, seconds % DAY // 3600
    for name in [n for n in shard.columns if _is_measure(shard, n)][:MOST_COLUMNS]:
        values = np.asarray(shard.columns[name].values, np.float64)
        found = [_move(values, days, hours, d) for d, _ in changes]
        signed = [m if begins else -m for m, (_, begins) in zip(found, changes, strict=True) if m is not None]
        beside = [_move(values, days, hours, d + off) for d, _ in changes for off in (-28, 28)]
        calm = [abs(m) for m in beside if m is not None]
        if len(signed) < CHANGES or not calm:
            continue
        if max(map(abs, signed)) < PART:
            stay.append(name)
        elif max(calm) > CALM * min(map(abs, signed)):
            continue
        elif all(abs(m - 1.0) <= NEAR for m in signed):
            later.append(name)
        elif all(-1.0 - NEAR <= m <= -PART for m in signed):
            earlier.append(name)
    if not later or not earlier:
        return None
    spans = [(d, next((e for e, b in changes if e > d and not b), int(days.max()) + 1)) for d, b in changes if b]
    first = np.flatnonzero((days >= spans[0][0]) & (days < spans[0][1]))
    return Moves(time, tuple(later), tuple(earlier), tuple(stay), len(changes), rules, int(first[0]))


def _is_measure(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return column.kind == "number" and column.values.dtype.kind in "iuf" and not column.row_shape and (
        column.rows == shard.rows and not is_identifier(column))


def _move(values: Array, days: Array, hours: Array, day: int) -> float | None:
    """By how many hours the mean day behind a date lies later than before it; None where it has no such day."""
    mean = []
    for first, behind in ((day - 7 * WEEKS, day), (day + 1, day + 1 + 7 * WEEKS)):
        here = (days >= first) & (days < behind) & np.isfinite(values)
        counts = np.bincount(hours[here], minlength=24)
        if counts.min() < FEWEST:
            return None
        profile = np.bincount(hours[here], weights=values[here], minlength=24) / counts
        if profile.std() < DAILY * max(1e-12, float(values[here].std())):
            return None
        mean.append((profile - profile.mean()) / profile.std())
    before, after = mean
    fits = np.array([float((before * np.roll(after, -k)).mean()) for k in range(-REACH - 1, REACH + 2)])
    best = int(fits[1:-1].argmax()) + 1
    if fits[best] < ALIKE:
        return None
    bend = fits[best - 1] - 2 * fits[best] + fits[best + 1]
    part = 0.5 * (fits[best - 1] - fits[best + 1]) / bend if bend < 0 else 0.0
    return best - REACH - 1 + float(np.clip(part, -0.5, 0.5))
