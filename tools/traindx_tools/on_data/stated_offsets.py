"""Hours by which the clocks of groups are stated to be off, beside the hours of the day at which they have rows.

A file beside the data gives each group (a depot, a station) its distance from one clock, and the code adds it to the
times. Where groups are busy at the same hours by their own clocks, one whose stated distance is wrong is busy at other
hours than all of them, and at theirs with the sign turned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import by_field
from traindx_tools.on_data.panels import is_moment
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.times import times_at
from traindx_tools.on_data.view import NamedNumbers

BINS = 48
"""Half hours of a day."""
FEWEST = 60
"""Rows of a group."""
GROUPS = 3
ALIKE = 0.7
"""Of two distributions over the day that lies in both, for groups that are busy at the same hours."""
APART = 0.5
"""The same for one that is not."""
SLACK = 0.15
"""By how much less of the turned day may lie in the others' than of theirs: habits of its own are no such day."""
CLEARER = 0.2
"""By how much one convention (distances are added, or taken away) explains the hours better than the other."""
MOST_ROWS = 200_000
_OFFSET = re.compile(r"(^|_)(utc|tz|gmt|zone|timezone)(_|$)|offset", re.IGNORECASE)


@dataclass(frozen=True)
class Turned:
    """Group `part` of `by`, whose stated hours fit only with the other sign."""

    stated: NamedNumbers
    time: str
    by: str
    part: str
    hours: float
    as_is: float
    turned: float
    others: float
    groups: int
    shard: Shard


def turned(data: DataSet, stated: Sequence[NamedNumbers]) -> Iterator[Turned]:
    """One for each property that states the distance of clocks."""
    group = tuple(s for s in data.shards if s.columns and s.rows)
    said = [s for s in stated if _OFFSET.search(s.name) and _in_hours(s.values) is not None]
    if not said or not group or sum(s.rows for s in group) > MOST_ROWS:
        return
    for time in [n for n, c in group[0].columns.items() if is_moment(c)][:3]:
        seconds = [_seconds(s.columns.get(time), s.rows) for s in group]
        if any(s is None for s in seconds):
            continue
        key = np.concatenate([s for s in seconds if s is not None])
        for cut in by_field(group, data.labels):
            member, names = np.concatenate(list(cut.member)), [n.strip("'\"") for n in cut.names]
            for one in said:
                hours = _in_hours(one.values)
                if hours is not None and set(names) <= set(hours) and len(names) >= GROUPS:
                    found = _of(key, member, [hours[n] for n in names])
                    if found is not None:
                        part, as_is, other, rest = found
                        yield Turned(one, time, cut.by, names[part], hours[names[part]], as_is, other, rest,
                                     len(names), group[0])


def _in_hours(values: Mapping[str, float]) -> dict[str, float] | None:
    """Distances of clocks in hours; they are written in hours, minutes or seconds. None where they are none."""
    told = np.array(list(values.values()), np.float64)
    most = float(np.abs(told).max(initial=0.0))
    for unit, step in ((1.0, 0.25), (60.0, 15.0), (3600.0, 900.0)):
        if 0 < most <= 14 * unit and bool((told % step == 0).all()) and (unit == 1.0 or most > 14):
            return {k: v / unit for k, v in values.items()}
    return None


def _seconds(column: Column | None, rows: int) -> Array | None:
    if column is None or column.rows != rows:
        return None
    found = times_at(column, np.arange(rows))
    return found if found is not None and np.isfinite(found).all() else None


def _of(key: Array, member: Array, hours: Sequence[float]) -> tuple[int, float, float, float] | None:
    """The group whose sign is turned, how much of its day lies in the others' as stated and turned, and theirs."""
    counts = np.bincount(member[member >= 0], minlength=len(hours))
    if counts.min() < FEWEST:
        return None
    found = sorted((f for sign in (1.0, -1.0) if (f := _of_sign(key, member, np.array(hours) * sign)) is not None),
                   key=_clear, reverse=True)
    return None if not found or (len(found) == 2 and _clear(found[0]) < _clear(found[1]) + CLEARER) else found[0]


def _clear(found: tuple[int, float, float, float]) -> float:
    """How clear it is, as what is in common: among the others and after turning, less what is as stated."""
    _, as_is, other, among = found
    return among + other - as_is


def _of_sign(key: Array, member: Array, hours: Array) -> tuple[int, float, float, float] | None:
    days = np.stack([_day(key[member == g] + 3600 * h) for g, h in enumerate(hours)])
    fits = np.array([_overlap(days[g], np.delete(days, g, axis=0).mean(0)) for g in range(len(days))])
    odd = int(fits.argmin())
    others = np.delete(days, odd, axis=0)
    among = min(_overlap(d, others.mean(0)) for d in others)
    if fits[odd] > APART or among < ALIKE or not hours[odd] or len(np.unique(np.delete(hours, odd))) < 2:
        return None
    other = _overlap(_day(key[member == odd] - 3600 * hours[odd]), others.mean(0))
    return (odd, float(fits[odd]), other, among) if other >= max(ALIKE, among - SLACK) else None


def _day(seconds: Array) -> Array:
    """The share of the rows in each half hour of the day, over three of them."""
    counts = np.bincount((seconds % 86_400 * BINS // 86_400).astype(np.int64) % BINS, minlength=BINS) / len(seconds)
    return np.asarray((np.roll(counts, 1) + counts + np.roll(counts, -1)) / 3)


def _overlap(one: Array, other: Array) -> float:
    return float(np.minimum(one, other).sum())
