"""Collects records while an artifact is read and makes series of them.

What is kept is bounded: of a longer log the records are thinned while it is read (see `thinning.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.growing import Growing, unknown
from traindx_tools.on_logs.readers.halving import EXACT, FEW, GONE, Kind, Mask, Part, Records, graded, kinds_of, thin
from traindx_tools.on_logs.readers.names import TRAIN, VALIDATION
from traindx_tools.on_logs.readers.one_counter import joined, told_once, without_told_again
from traindx_tools.on_logs.readers.series_names import Key, canonical_names
from traindx_tools.on_logs.readers.thinning import (
    LEAST_EDGES,
    MOST_AROUND,
    MOST_EDGES,
    kept_exactly,
    records_between,
    values_between,
)
from traindx_tools.on_logs.run import Floats, Ints, Series

MAX_VALUES = 20_000_000
"""Values kept of one artifact where nothing else is said: about half a gigabyte with their places."""
ROOM = 0.4
"""Share of them that is left when they are thinned, so that it is done seldom."""
FORESEEN, LOOKED, LEFT = 1.25, 0.2, 0.6
"""Times what may be kept that a source will have, judged by what was read once it is this share of what may be kept,
from which on it is thinned at once, to such a share: what is dropped later costs its memory and time."""
PIECE = 1 << 17
"""Records of which is decided at once which stay: what is asked of them stays in the processor's cache."""
_MOST: ContextVar[int] = ContextVar("values kept of one artifact", default=MAX_VALUES)
MAX_SERIES = 5_000
"""Different metric names kept of one artifact: more is not a log of metrics but noise."""
_TOO_MANY = f"too many different names: only the first {MAX_SERIES:,} metrics were kept"
LARGEST_PLACE = 2.0**53
"""Beyond it a double no longer tells one step from the next: such a number counts nothing."""


@dataclass(frozen=True)
class _Places:
    step: Floats
    epoch: Floats
    time: Floats
    line: Ints
    since: float


Columns = tuple[Growing, Growing]
"""Record numbers and values of one series."""


@contextmanager
def keeping(values: int) -> Iterator[None]:
    """What is read meanwhile keeps at most so many values of each artifact."""
    before = _MOST.set(values)
    try:
        yield
    finally:
        _MOST.reset(before)


@dataclass
class Recorder:
    """Record by record: where it stands, then its values. `steps` may be rewritten before `series` is called."""

    source: str
    step: Growing = field(default_factory=lambda: Growing("d"))
    epoch: Growing = field(default_factory=lambda: Growing("d"))
    time: Growing = field(default_factory=lambda: Growing("d"))
    line: Growing = field(default_factory=lambda: Growing("q"))
    kept: int = 0
    most: int = field(default_factory=_MOST.get)
    """Values that may be kept."""
    full: bool = False
    """Whether no further value is taken: nothing of what is kept may be dropped."""
    dropped_names: int = 0
    beside: tuple[Growing, ...] = ()
    """What a reader holds of each record besides: thinned alike. One entry a record when a record is added."""
    share: float = 0.0
    """Of the source, that is read with the next records, as its reader says; 0 where nobody knows."""
    _foreseen: bool = False
    _values: dict[Key, Columns] = field(default_factory=dict)
    _grade: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    """Of each record that was there when they were thinned last."""
    _levels: dict[int, int] = field(default_factory=dict)
    _gone: list[int] = field(default_factory=lambda: [0, 0])
    """Records, and values, that were dropped."""

    @property
    def cut(self) -> str:
        """What was left out, in words; "" for nothing."""
        if self.full:
            return f"only its first {self.kept:,} values were kept"
        return _TOO_MANY if self.dropped_names else ""

    def __len__(self) -> int:
        return len(self.line)

    @property
    def last_line(self) -> int:
        """The line of the last record, 1 where there is none."""
        return int(self.line.last) if len(self.line) else 1

    @property
    def read(self) -> int:
        """Records that were read."""
        return len(self) + self._gone[0]

    @property
    def rows(self) -> int:
        """Records that were read and hold a value of a series that was kept."""
        if any(len(index) == len(self) for index, _ in self._values.values()):
            return self.read
        kept = np.zeros(len(self), dtype=bool)
        for index, _ in self._values.values():
            kept[index.told()] = True
        return int(kept.sum()) + self._gone[0]

    @property
    def remark(self) -> str:
        """What a person should know of what was not kept; "" where all was."""
        said = []
        if self._gone[1]:
            said.append(f"of {self.kept + self._gone[1]:,} values {self.kept:,} were kept: all that stand out, and of "
                        f"the others one of {2 ** max(self._levels.values(), default=0)} at most")
        if self.full:
            said.append(f"only its first {self.kept:,} values were kept")
        if self.dropped_names:
            said.append(_TOO_MANY)
        return "; ".join(said)

    def has_room(self, values: int) -> bool:
        """Whether so many more may be kept, if need be after thinning."""
        if self.kept + values > self.most and not self.full:
            self._thin()
        return self.kept + values <= self.most

    def even_out(self) -> None:
        """Thins the last records as those before them: to be called when all are read."""
        if self._gone[1]:
            self._thin_last()

    def _foresees_too_many(self) -> bool:
        """Whether what is left of the source will hold more than may be kept, and nothing was dropped yet."""
        return self.kept > LOOKED * self.most and not self._foreseen and (
            0 < self.share < 1 / FORESEEN and self.kept > FORESEEN * self.most * self.share)

    def _thin(self, room: float = ROOM) -> None:
        """Drops records until such a share of what may be kept is used."""
        self._thin_last()
        signed = self._kinds()
        thin(list(signed.values()), int(room * self.most))
        self._levels = {sign: kind.level for sign, kind in signed.items()}
        stays = self._grade != GONE
        self._grade = self._grade[stays]
        self._drop(0, stays)
        self.full = self.kept >= self.most

    def _kinds(self) -> dict[int, Kind]:
        """The records of each kind, piece by piece; those of a kind of few records together."""
        held = [self._records_of(index) for index, _ in self._values.values()]
        found: dict[int, Kind] = {}
        for start in range(0, len(self), PIECE):
            end = min(start + PIECE, len(self))
            grade, line = self._grade[start:end], self.line.between(start, end)
            here = [records_between(records, start, end) for records in held]
            for sign, rows in kinds_of(end - start, enumerate(here)):
                kind = found.get(sign)
                if kind is None:
                    first = 0 if isinstance(rows, slice) else int(rows[0])
                    width = sum(isinstance(r, slice) or first in r[np.searchsorted(r, first):][:1] for r in here)
                    kind = found[sign] = Kind(width, self._levels.get(sign, 0), [])
                kind.parts.append(Part(rows, grade, line, start))
        for kind in found.values():
            if sum(p.count() for p in kind.parts) < FEW * len(kind.parts):
                places = np.concatenate([p.places() for p in kind.parts])
                kind.parts = [Part(places, self._grade, self.line.told())]
        return found

    def _thin_last(self) -> None:
        """Grades the records that came since they were thinned last, and drops of them what was dropped of those."""
        old, count = len(self._grade), len(self)
        grades, stays, exact = [self._grade], [], int(np.count_nonzero(self._grade == EXACT)) if count > old else 0
        for start in range(old, count, PIECE):
            grade, stay = self._graded(start, min(start + PIECE, count), exact)
            grades.append(grade[stay])
            stays.append(stay)
            exact += int(np.count_nonzero(grades[-1] == EXACT))
        if stays:
            self._grade = np.concatenate(grades)
            self._drop(old, np.concatenate(stays))

    def _graded(self, start: int, end: int, exact: int) -> tuple[NDArray[np.int8], Mask]:
        """Grades of the records from one to another, and which of them stay. `exact`: how many stay in any case."""
        step, epoch, time, line = (e.between(start, end) for e in (self.step, self.epoch, self.time, self.line))
        held = [values_between(self._records_of(i), v.told(), start, end) for i, v in self._values.values()]
        most = self.most * len(self) / max(1, self.kept)  # records
        edges = int(max(LEAST_EDGES, min(1.0, (end - start) / ((1 - ROOM) * most)) * MOST_EDGES))
        exactly = kept_exactly(end - start, [h for h in held if len(h[1])], step, epoch, time,
                               int(MOST_AROUND * most) - exact, edges)
        grade = graded(exactly, (records for records, _ in held), self._levels, line)
        return grade, grade != GONE

    def _records_of(self, index: Growing) -> Records:
        """The records of a series: a slice where these are all."""
        return slice(0, len(self)) if len(index) == len(self) else index.told()

    def _drop(self, since: int, stays: Mask) -> None:
        """Leaves, of the records from one on, those that stay."""
        if stays.all():
            return
        staying = np.flatnonzero(stays) + since
        left, before = since + len(staying), self.kept
        for index, values in self._values.values():
            records = self._records_of(index)
            if isinstance(records, slice):
                here, at = staying, since
                index.cut(since)
                index.extend(range(since, left))
            else:
                at = int(np.searchsorted(records, since))
                here = np.flatnonzero(stays[records[at:] - since]) + at
                index.put(at, np.searchsorted(staying, records[here]) + since)
            values.put(at, values.some(here))
        for each in (self.step, self.epoch, self.time, self.line, *self.beside):
            each.put(since, each.some(staying))
        self.kept = sum(len(index) for index, _ in self._values.values())
        self._gone[0] += len(stays) - (left - since)
        self._gone[1] += before - self.kept

    def columns(self, key: Key) -> Columns | None:
        """Where record numbers and values of a series go. None when there are too many series."""
        return self._values.get(key) or self._new(key)

    def append(self, line: int, columns: Iterable[Columns | None], numbers: Sequence[float], step: float, epoch: float,
               time: float) -> bool:
        """`add` for a reader that has looked its columns up before and gives each once: for speed. Whether it fits."""
        if self.kept >= self.most and not self.has_room(1):
            return False
        index = len(self.line)
        self.step.append(step)
        self.epoch.append(epoch)
        self.time.append(time)
        self.line.append(line)
        for column, number in zip(columns, numbers):  # noqa: B905 - once a value: a keyword costs a tenth of the time
            if column is not None:
                places, values = column
                places.append(index)
                values.append(number)
        self.kept += len(numbers)
        return True

    def append_all(self, lines: Ints | range, step: Floats, epoch: Floats, time: Floats,
                   values: Sequence[tuple[Columns | None, Records, Floats]], beside: Sequence[NDArray[Any]] = ()
                   ) -> None:
        """`append` for many records. `values`: where they go, the record of each, counted from the first, ascending; a
        slice where each has one. `beside`: what the reader holds of each besides.

        Values of several shapes of lines may go to one series: they are put in the order of the records.
        """
        if self._gone[1] and len(self) - len(self._grade) >= PIECE:
            self._thin_last()
        elif not self._gone[1] and self._foresees_too_many():
            self._foreseen = True
            self._thin(LEFT * self.share)
        first, count = len(self), len(lines)
        every = (self.step, self.epoch, self.time, self.line, *self.beside[:len(beside)])
        numbered = count > 0 and lines[-1] - lines[0] == count - 1
        of_lines = range(int(lines[0]), int(lines[-1]) + 1) if numbered else lines
        for held, new in zip(every, (step, epoch, time, of_lines, *beside), strict=True):
            held.extend(new)
        by_series: dict[int, tuple[Columns, list[Records], list[Floats]]] = {}
        for column, records, numbers in values:
            self.kept += len(numbers)
            if column is not None:
                _, places, told = by_series.setdefault(id(column), (column, [], []))
                places.append(records)
                told.append(numbers)
        for (index, kept), places, told in by_series.values():
            records, numbers = _in_order(places, told)
            if isinstance(records, slice) or (0 < len(records) == count and records[-1] - records[0] == count - 1):
                index.extend(range(first, first + count))
            else:
                index.extend(records + first)
            kept.extend(numbers)

    def add(self, line: int, values: Iterable[tuple[Key, float]], *, step: float = math.nan, epoch: float = math.nan,
            time: float = math.nan) -> None:
        """One record. `time` is absolute seconds of any clock, NaN where unknown."""
        if self.kept >= self.most and not self.has_room(1):
            return
        index = len(self.line)
        self.step.append(step)
        self.epoch.append(epoch)
        self.time.append(time)
        self.line.append(line)
        for key, number in values:
            columns = self._values.get(key)
            if columns is None:
                columns = self._new(key)
                if columns is None:
                    continue
            if columns[0].last == index:
                columns[1].pop()
                columns[1].append(number)
                continue
            columns[0].append(index)
            columns[1].append(number)
            self.kept += 1

    def _new(self, key: Key) -> Columns | None:
        if len(self._values) >= MAX_SERIES:
            self.dropped_names += 1
            return None
        return self._values.setdefault(key, (Growing("q"), Growing("d")))

    def count_apart(self) -> None:
        """Leaves records of counters of different scale apart, and joins the others; what is told twice is kept once.

        To be called when all are read and their steps are known."""
        self.even_out()
        step, epoch = self.step.told(), self.epoch.told()
        self._values = without_told_again(joined(self._values, step), step, epoch)
        if not (step[1:] > step[:-1]).all():  # else no step is told twice, of any series
            self._values = {k: told_once(c, step, epoch) for k, c in self._values.items()}

    def forget(self, keys: Iterable[Key]) -> None:
        """Drops series that turned out to be no metrics."""
        for key in list(keys):
            self._values.pop(key, None)

    def scale(self, factors: Mapping[Key, float]) -> None:
        """Brings series to their canonical unit."""
        for key, factor in factors.items():
            numbers = self._values[key][1]
            numbers.put(0, numbers.told() * factor)

    def counts(self) -> dict[Key, int]:
        """How many values each series has."""
        return {key: len(index) for key, (index, _) in self._values.items()}

    def series(self) -> tuple[Series, ...]:
        """The series in the order of their first appearance; arrays of places are shared between them."""
        self.even_out()
        columns = {key: both for key, both in self._values.items() if len(both[0])}
        time, since = self.time.told(), _first(self.time.told())
        passed = unknown(len(time)) if math.isnan(since) else time - since
        places = _Places(_counted(self.step.told()), _counted(self.epoch.told()), passed, self.line.told(), since)
        shared: dict[bytes, _Places] = {}
        names = canonical_names({key: index for key, (index, _) in columns.items()})
        return tuple(self._one(key, names[key], index, number, places, shared)
                     for key, (index, number) in columns.items())

    def _one(self, key: Key, name: str, index: Growing, number: Growing, places: _Places,
             shared: dict[bytes, _Places]) -> Series:
        records = None if len(index) == len(places.line) else index.told()
        sign = b"" if records is None else records.tobytes()
        if sign not in shared:
            shared[sign] = places if records is None else _Places(
                places.step[records], places.epoch[records], places.time[records], places.line[records], places.since)
        at = shared[sign]
        return Series(name=name, original=key.original, group=key.group, source=self.source, values=number.told(),
                      step=at.step, epoch=at.epoch, time=at.time, line=at.line, rank=key.rank,
                      thinned=self._gone[1] > 0, since=places.since, counter=key.counter)


def _in_order(places: Sequence[Records], told: Sequence[Floats]) -> tuple[Records, Floats]:
    """Values of several shapes of lines with their records, by record."""
    if len(places) == 1:
        return places[0], told[0]
    each = [np.arange(p.start, p.stop) if isinstance(p, slice) else p for p in places]
    records, numbers = np.concatenate(each), np.concatenate(told)
    order = np.argsort(records, kind="stable")
    return records[order], numbers[order]


def _counted(numbers: Floats) -> Floats:
    """The numbers, without those that are too large to count."""
    known = np.fmax.reduce(numbers, initial=0.0) <= LARGEST_PLACE and (
        np.fmin.reduce(numbers, initial=0.0) >= -LARGEST_PLACE)
    return numbers if known else np.where(np.abs(numbers) <= LARGEST_PLACE, numbers, np.nan)


def _first(time: Floats) -> float:
    known = np.isfinite(time)
    return float(time[known.argmax()]) if known.any() else math.nan


__all__ = ["MAX_SERIES", "MAX_VALUES", "TRAIN", "VALIDATION", "Key", "Recorder"]
