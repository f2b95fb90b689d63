"""Rows of one training file from the time of held-out data that all other training rows lie before."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.names import number_of
from traindx_tools.on_data.places import short
from traindx_tools.on_data.roles import is_epoch, is_identifier, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.times import times_at

MOST = 20_000
"""Rows of a file whose times are read, evenly spaced."""
FEWEST = 8
"""Rows that come too late."""
FEWEST_HELD_OUT = 20
OTHERS = 0.001
"""Share of the other training rows that may lie behind the beginning: a wrong clock."""
MOST_LATE = 0.9
"""Share of the file above which all of it is of another time, as windows that roll are."""
DEEP = 0.2
"""Share of the held-out rows that half of the late rows lie behind: what only ends late lies at the beginning."""
INSIDE = 0.5
"""Share of the late rows before the end of the held-out data: a block in the middle has training rows behind it."""
_NAME = re.compile(
    r"(^|_)(t|ts|time|times|timestamp|date|datetime|day|days|sec|secs|seconds|at|when|week|month|year)$", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class Late:
    """Training rows from the time of a split of held-out data."""

    field: str
    split: str
    shard: Shard
    rows: Array
    """int64: which rows of the file, of those that were looked at."""
    share: float
    """Of the rows of the file."""
    first: int
    """A row of the held-out data at their beginning, in `held`."""
    held: Shard
    others: int
    """Training rows that were looked at and lie before."""
    log_chance: float


@dataclass(frozen=True, eq=False)
class _Times:
    shard: Shard
    index: Array
    times: Array


def late_rows(data: DataSet) -> list[Late]:
    """The surest for each split of held-out data; none where another field of times is in order."""
    train = [s for s in data.splits.get("train", ()) if s.columns]
    out = []
    for split, group in data.splits.items():
        if split in ("", "train") or not train:
            continue
        fields = [n for n in data.fields if all(n in s.columns for s in (*train, *group))
                  and all(_may_be_time(s.columns[n]) for s in (*train, *group))]
        read = [(n, _read(train, n), _read(group, n)) for n in fields]
        known = [(n, t, h) for n, t, h in read if t and h]
        if any(max(t.times.max() for t in ts) <= min(h.times.min() for h in hs) for _, ts, hs in known):
            continue
        found = [late for n, ts, hs in known if (late := _late(n, split, ts, hs)) is not None]
        out += sorted(found, key=lambda f: f.log_chance)[:1]
    return out


def _may_be_time(column: Column) -> bool:
    if column.row_shape or column.kind == "sequence" or (column.kind == "text" and len(column.texts) < column.rows):
        return False
    called = is_time(column.name) or _NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.name)) is not None
    number = column.kind == "number" and column.values.dtype.kind in "iuf" and column.rows > 0
    epoch = number and is_epoch(column.values)
    return called or epoch or (column.kind == "text" and is_identifier(column))


def _read(shards: Sequence[Shard], name: str) -> list[_Times]:
    """The times of all files, [] where one of them holds something else."""
    out = []
    for shard in shards:
        if not shard.rows:
            continue
        column = shard.columns[name]
        index = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, MOST)).astype(np.int64))
        if column.missing is not None:
            index = index[~column.missing[index]]
        if column.kind == "text":
            index = index[[bool(column.texts[i].strip()) for i in index]] if len(index) else index
        times = times_at(column, index) if len(index) else None
        if times is None:
            return []
        kept = np.isfinite(times)
        if kept.any():
            out.append(_Times(shard, index[kept], times[kept]))
    return out


def _late(name: str, split: str, train: Sequence[_Times], held: Sequence[_Times]) -> Late | None:
    theirs = np.sort(np.concatenate([h.times for h in held]))
    if len(theirs) < FEWEST_HELD_OUT or len({t.shard.columns[name].kind for t in (*train, *held)}) > 1:
        return None
    begins = float(theirs[0])
    late = [t.times > begins for t in train]
    odd = int(np.argmax([int(x.sum()) for x in late]))
    mine, where = train[odd], late[odd]
    others = sum(len(t.times) for t in train) - int(where.sum())
    strays = sum(int(x.sum()) for k, x in enumerate(late) if k != odd)
    share = float(where.mean())
    if where.sum() < FEWEST or strays > OTHERS * others or share > MOST_LATE or _has_its_own(mine, held):
        return None
    if len(train) == 1 and share > 0.5:
        return None
    times = mine.times[where]
    deep = np.searchsorted(theirs, np.median(times)) / len(theirs)
    if deep < DEEP or float((times <= theirs[-1]).mean()) < INSIDE:
        return None
    first = min(held, key=lambda h: float(h.times.min()))
    return Late(name, split, mine.shard, mine.index[where], share, int(first.index[first.times.argmin()]), first.shard,
                others - strays, _log_chance(others - strays, len(theirs)))


def _has_its_own(mine: _Times, held: Sequence[_Times]) -> bool:
    """Whether a held-out file of the same number begins where the training file ends: windows that roll."""
    number = number_of(short(mine.shard))
    return any(number and number_of(short(h.shard)) == number and h.times.min() >= mine.times.max() for h in held)


def _log_chance(before: int, after: int) -> float:
    """Of a random order in which all training rows but the late ones come before all held-out rows."""
    return math.lgamma(before + 1) + math.lgamma(after + 1) - math.lgamma(before + after + 1)
