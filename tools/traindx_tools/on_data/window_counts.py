"""Columns that count the rows of another table, or add them up, in a window before or behind the time of their row.

Logins of the last 30 days, tickets, amounts: where the table of events lies beside, each such number can be made again.
The window that gives it in nearly all rows of a file is its own; two files whose windows differ hold two columns under
one name, and one that lies behind the row's time holds what is to be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.calendar_parts import DAY, seconds_of
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_id_name, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 28, 30, 31, 42, 56, 60, 84, 90, 91, 120, 180, 182, 365)
EXACT, OTHERWISE = 0.95, 0.8
"""Share of the rows that a window gives exactly, at least; and those of another file, at most."""
KINDS = 4
"""Different counts, of which none is more frequent than `MOST_ONE` of the rows."""
MOST_ONE = 0.9
FEWEST = 60
LOOKED = 3_000
"""Rows of a file that are made again."""
MOST_EVENTS = 20_000_000
MOST_COLUMNS, MOST_SUMMED = 12, 3


@dataclass(frozen=True)
class Window:
    """Of `days`, before the row's time or behind it; `of`: what is added up, "" for the rows themselves."""

    behind: bool
    days: int
    of: str
    at_start: bool
    """Whether an event at the time itself counts."""

    @property
    def told(self) -> str:
        """`the rows of the 30 days before`."""
        return f"the {self.days} day{'s' * (self.days != 1)} {'behind' if self.behind else 'before'}"


@dataclass(frozen=True, eq=False)
class WindowsApart:
    """A column that is made by `own` in `shard` and by `usual` in `other`; shares of rows that each gives."""

    column: str
    time: str
    key: str
    events: Shard
    shard: Shard
    other: Shard
    own: Window
    usual: Window
    holds: float
    """Of `own` in `shard`."""
    usual_here: float
    usual_there: float
    rows: int


@dataclass(frozen=True, eq=False)
class _Events:
    shard: Shard
    kinds: Array
    order: Array
    """Codes and times as one number, sorted."""
    sums: dict[str, Array]
    """By what is added up, running sums behind a 0."""
    first: int
    span: int


def windows_apart(sets: Sequence[DataSet]) -> Iterator[WindowsApart]:
    """One for each column, by the first table of events that makes it."""
    shards = [s for d in sets for s in d.shards if s.columns and s.rows and s.numbers is None]
    for data in sets:
        group = [s for s in data.shards if s.columns and s.rows >= FEWEST and s.numbers is None]
        if len(group) < 2:
            continue
        for key in [n for n, c in group[0].columns.items() if is_id_name(n) and not c.row_shape]:
            tables = [s for s in shards if s not in group and key in s.columns and s.rows <= MOST_EVENTS]
            for events in (e for t in tables if (e := _events(t, key)) is not None):
                yield from _of_group(group, key, events)


def _time(shard: Shard) -> tuple[str, Array] | None:
    for name, column in shard.columns.items():
        if column.rows == shard.rows and not column.row_shape and column.kind in ("number", "text"):
            seconds = seconds_of(column, np.arange(shard.rows))
            if seconds is not None:
                return name, seconds
    return None


def _events(shard: Shard, key: str) -> _Events | None:
    found, column = _time(shard), shard.columns[key]
    if found is None or column.rows != shard.rows or column.kind not in ("number", "text"):
        return None
    kinds, codes = np.unique(keys(column), return_inverse=True)
    first, span = int(found[1].min()), int(np.ptp(found[1])) + 2 * (DAYS[-1] + 2) * DAY
    at = codes.reshape(-1).astype(np.int64) * span + (found[1] - first) + (DAYS[-1] + 1) * DAY
    order = np.argsort(at, kind="stable")
    summed = [n for n, c in shard.columns.items() if n not in (key, found[0]) and _is_number(c, shard.rows)
              and not is_id_name(n)][:MOST_SUMMED]
    values = {"": np.ones(shard.rows)} | {n: np.asarray(shard.columns[n].values, np.float64) for n in summed}
    sums = {n: np.concatenate([[0.0], np.cumsum(v[order])]) for n, v in values.items()}
    return _Events(shard, kinds, at[order], sums, first, span)


def _is_number(column: Column, rows: int) -> bool:
    return column.kind == "number" and column.values.dtype.kind in "iuf" and not column.row_shape and (
        column.rows == rows and bool(np.isfinite(column.values).all()))


def _of_group(group: Sequence[Shard], key: str, events: _Events) -> Iterator[WindowsApart]:
    names = [n for n, c in group[0].columns.items() if n != key and _is_number(c, group[0].rows)][:MOST_COLUMNS]
    made = [(s, found) for s in group if (found := _made_again(s, key, events)) is not None]
    for name in names:
        known = []
        for shard, (_, windows, rows) in made:
            column = shard.columns.get(name)
            if column is not None and _is_number(column, shard.rows):
                values = np.asarray(column.values, np.float64)[rows]
                shares = {w: float(np.isclose(v, values, rtol=1e-4, atol=5e-3).mean()) for w, v in windows.items()}
                if _varies(values):
                    known.append((shard, shares))
        yield from _apart(name, key, events, known, {id(s): (f[0], len(f[2])) for s, f in made})


def _varies(values: Array) -> bool:
    kinds, counts = np.unique(values, return_counts=True)
    return len(kinds) >= KINDS and int(counts.max()) <= MOST_ONE * len(values)


def _made_again(shard: Shard, key: str, events: _Events) -> tuple[str, dict[Window, Array], Array] | None:
    """The field of times, what each window gives for some rows, and which rows."""
    found, column = _time(shard), shard.columns.get(key)
    if found is None or column is None or column.rows != shard.rows or column.kind not in ("number", "text"):
        return None
    rows = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, LOOKED)).astype(np.int64))
    ids, seconds = keys(column)[rows], found[1][rows] - events.first + (DAYS[-1] + 1) * DAY
    at = np.minimum(np.searchsorted(events.kinds, ids), len(events.kinds) - 1)
    there = (events.kinds[at] == ids) & (seconds >= 0) & (seconds < events.span)
    low, high = at * events.span, (at + 1) * events.span - 1
    made: dict[Window, Array] = {}
    for days in DAYS:
        for behind in (False, True):
            for at_start in (False, True):
                ends = (seconds, seconds + days * DAY) if behind else (seconds - days * DAY, seconds)
                # either the time itself counts and the far end does not, or the reverse
                places = [np.clip(low + e, low, high) for e in ends]
                where = [np.searchsorted(events.order, p, side="left") if behind is at_start else
                         np.searchsorted(events.order, p, side="right") for p in places]
                for of, sums in events.sums.items():
                    made[Window(behind, days, of, at_start)] = np.where(there, sums[where[1]] - sums[where[0]], 0.0)
    return found[0], made, rows


def _apart(name: str, key: str, events: _Events, known: Sequence[tuple[Shard, dict[Window, float]]],
           of: dict[int, tuple[str, int]]) -> Iterator[WindowsApart]:
    """The file whose window is another one than that of the largest other file: one behind is never the usual."""
    best = [(s, shares, max(shares, key=lambda w: shares[w])) for s, shares in known]
    sure = [(s, shares, w) for s, shares, w in best if shares[w] >= EXACT]
    usual = sorted((b for b in sure if not b[2].behind), key=lambda b: -b[0].rows)
    if not usual:
        return
    other, there, window = usual[0]
    for shard, shares, own in sure:
        if shard is not other and shares[window] <= OTHERWISE and there[own] <= OTHERWISE:
            yield WindowsApart(name, of[id(shard)][0], key, events.shard, shard, other, own, window, shares[own],
                               shares[window], there[window], of[id(shard)][1])
            return
