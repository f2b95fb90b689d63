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

from traindx_tools.on_logs.readers.growing import Growing
from traindx_tools.on_logs.readers.names import GROUPS, TRAIN, VALIDATION, Name, identify, words
from traindx_tools.on_logs.readers.thinning import EXACT, MOST_AROUND, Kind, Records, kept_exactly, kinds_of, thinned
from traindx_tools.on_logs.run import Floats, Ints, Series

MAX_VALUES = 20_000_000
"""Values kept of one artifact where nothing else is said: about half a gigabyte."""
ROOM = 0.4
"""Share of them that is left when they are thinned, so that it is done seldom."""
_MOST: ContextVar[int] = ContextVar("values kept of one artifact", default=MAX_VALUES)
MAX_SERIES = 5_000
"""Different metric names kept of one artifact: more is not a log of metrics but noise."""


LARGEST_PLACE = 2.0**53
"""Beyond it a double no longer tells one step from the next: such a number counts nothing."""


@dataclass(frozen=True)
class Key:
    """What makes a series: its name as written, its group and its rank."""

    original: str
    group: str
    rank: int | None = None
    metric: str | None = None
    """The canonical name where something other than the name decides it (a unit, a tag)."""

    @property
    def name(self) -> Name:
        """What the original name stands for."""
        return identify(self.original)


@dataclass(frozen=True)
class _Places:
    step: Floats
    epoch: Floats
    time: Floats
    line: Ints


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
        return f"{self.dropped_names} values of too many different names were left out" if self.dropped_names else ""

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
            said.append(f"{self.dropped_names} values of too many different names were left out")
        return "; ".join(said)

    def has_room(self, values: int) -> bool:
        """Whether so many more may be kept, if need be after thinning."""
        if self.kept + values > self.most and not self.full:
            self._thin()
        return self.kept + values <= self.most

    def even_out(self) -> None:
        """Thins the last records as those before them: to be called when all are read."""
        if self._gone[1] and len(self._grade) < len(self):
            self._thin(1.0)

    def _thin(self, room: float = ROOM) -> None:
        """Drops records until a share of what may be kept is used."""
        count, old = len(self), len(self._grade)
        line, step, epoch, time = (each.told() for each in (self.line, self.step, self.epoch, self.time))
        held = [(self._records_of(index), values.told()) for index, values in self._values.values()]
        fresh = [one for index, values in held if len((one := _since(index, values, old))[1])]
        grade = np.concatenate([self._grade, np.zeros(count - old, np.int8)])
        around = int(MOST_AROUND * self.most * count / max(1, self.kept)) - int((grade == EXACT).sum())
        grade[old:][kept_exactly(count - old, fresh, step[old:], epoch[old:], time[old:], around)] = EXACT
        width = np.zeros(count, np.int64)
        for index, _ in held:
            width[index] += 1
        signed = [(sign, Kind(rows, int(width[rows[0]]), self._levels.get(sign, 0))) for sign, rows in
                  kinds_of(count, ((i, index) for i, (index, _) in enumerate(held))) if len(rows)]
        thinned([kind for _, kind in signed], grade, line, int(room * self.most))
        self._levels = {sign: kind.level for sign, kind in signed}
        stays = np.zeros(count, bool)
        for _, kind in signed:
            stays[kind.rows] = True
        self._keep(stays, grade, held)
        self.full = self.kept >= self.most

    def _records_of(self, index: Growing) -> Records:
        """The records of a series: a slice where these are all."""
        return slice(0, len(self)) if len(index) == len(self) else index.told()

    def _keep(self, stays: NDArray[np.bool_], grade: NDArray[np.int8], held: Sequence[tuple[Records, Floats]]) -> None:
        """Leaves the records that stay."""
        for each in (self.step, self.epoch, self.time, self.line, *self.beside):
            each.refill(each.told()[stays])
        self._grade = grade[stays]
        number = np.cumsum(stays) - 1
        before = self.kept
        for (index, values), (records, told) in zip(self._values.values(), held, strict=True):
            mine = stays[records]
            index.refill(range(len(self)) if isinstance(records, slice) else number[records[mine]])
            values.refill(told[mine])
        self.kept = sum(len(index) for index, _ in self._values.values())
        self._gone[0] += int((~stays).sum())
        self._gone[1] += before - self.kept

    def columns(self, key: Key) -> Columns | None:
        """Where the values of a series go: record numbers and values. None when there are too many series."""
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

    def append_all(self, lines: Ints, step: Floats, epoch: Floats, time: Floats,
                   values: Sequence[tuple[Columns | None, Ints, Floats]], beside: Sequence[NDArray[Any]] = ()) -> None:
        """`append` for many records. `values`: where they go, the record of each, counted from the first, ascending.
        `beside`: what the reader holds of each besides.

        Values of several shapes of lines may go to one series: they are put in the order of the records.
        """
        first, count = len(self), len(lines)
        every = (self.step, self.epoch, self.time, self.line, *self.beside[:len(beside)])
        for held, new in zip(every, (step, epoch, time, lines, *beside), strict=True):
            held.extend(new)
        by_series: dict[int, tuple[Columns, list[Ints], list[Floats]]] = {}
        for column, records, numbers in values:
            self.kept += len(numbers)
            if column is not None:
                _, places, told = by_series.setdefault(id(column), (column, [], []))
                places.append(records)
                told.append(numbers)
        for (index, kept), places, told in by_series.values():
            records, numbers = _in_order(places, told)
            every_one = len(records) == count and count > 0 and records[0] == 0 and records[-1] == count - 1
            index.extend(range(first, first + count) if every_one else records + first)
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
        self._values[key] = (Growing("q"), Growing("d"))
        return self._values[key]

    def forget(self, keys: Iterable[Key]) -> None:
        """Drops series that turned out to be no metrics."""
        for key in list(keys):
            self._values.pop(key, None)

    def scale(self, factors: Mapping[Key, float]) -> None:
        """Brings series to their canonical unit."""
        for key, factor in factors.items():
            numbers = self._values[key][1]
            numbers.refill(numbers.told() * factor)

    def counts(self) -> dict[Key, int]:
        """How many values each series has."""
        return {key: len(index) for key, (index, _) in self._values.items()}

    def series(self) -> tuple[Series, ...]:
        """The series in the order of their first appearance; arrays of places are shared between them."""
        self.even_out()
        columns = {key: both for key, both in self._values.items() if len(both[0])}
        places = _Places(_counted(self.step.told()), _counted(self.epoch.told()), _since_first(self.time.told()),
                         self.line.told())
        shared: dict[bytes, _Places] = {}
        names = _canonical_names({key: index for key, (index, _) in columns.items()})
        return tuple(self._one(key, names[key], index, number, places, shared)
                     for key, (index, number) in columns.items())

    def _one(self, key: Key, name: str, index: Growing, number: Growing, places: _Places,
             shared: dict[bytes, _Places]) -> Series:
        records = None if len(index) == len(places.line) else index.told()
        sign = b"" if records is None else records.tobytes()
        if sign not in shared:
            shared[sign] = places if records is None else _Places(
                places.step[records], places.epoch[records], places.time[records], places.line[records])
        at = shared[sign]
        return Series(name=name, original=key.original, group=key.group, source=self.source, values=number.told(),
                      step=at.step, epoch=at.epoch, time=at.time, line=at.line, rank=key.rank,
                      thinned=self._gone[1] > 0)


def _in_order(places: Sequence[Ints], told: Sequence[Floats]) -> tuple[Ints, Floats]:
    """Values of several shapes of lines with their records, by record."""
    if len(places) == 1:
        return places[0], told[0]
    records, numbers = np.concatenate(places), np.concatenate(told)
    order = np.argsort(records, kind="stable")
    return records[order], numbers[order]


def _since(index: Records, values: Floats, record: int) -> tuple[Ints, Floats]:
    """The values from a record on, with their records counted from there."""
    if isinstance(index, slice):
        return np.arange(len(values) - record), values[record:]
    at = int(np.searchsorted(index, record))
    return index[at:] - record, values[at:]


def _counted(numbers: Floats) -> Floats:
    """The numbers, without those that are too large to count."""
    known = np.fmax.reduce(numbers, initial=0.0) <= LARGEST_PLACE and (
        np.fmin.reduce(numbers, initial=0.0) >= -LARGEST_PLACE)
    return numbers if known else np.where(np.abs(numbers) <= LARGEST_PLACE, numbers, np.nan)


def _since_first(time: Floats) -> Floats:
    known = np.isfinite(time)
    return time - time[known.argmax()] if known.any() else time


def _canonical_names(index: dict[Key, Growing]) -> dict[Key, str]:
    """Canonical names, such that no two metrics of one record share one.

    Of "loss" and "total_loss" in the same record the one that stands earlier in the table keeps the name; the other is
    called by its own. Perplexity beside a codebook is the codebook's.
    """
    vector_quantized = any(k.name.canonical in ("loss/commit", "loss/vq", "codebook_used", "codebook_utilization",
                                                "codebook_size") for k in index)
    names: dict[Key, str] = {}
    taken: dict[tuple[str, str, int | None], list[Key]] = {}
    for key in sorted(index, key=lambda k: k.name.preference):
        name = key.metric or key.name.canonical
        if name == "perplexity" and vector_quantized:
            name = "codebook_perplexity"
        rivals = taken.setdefault((name, key.group, key.rank), [])
        meets = any(_meet(index[key], index[k]) for k in rivals)
        names[key] = own_name(key.original) if meets else name
        if not meets:
            rivals.append(key)
    return names


def _meet(one: Growing, other: Growing) -> bool:
    """Whether two series have a value in the same record."""
    return bool(np.isin(one.told(), other.told(), assume_unique=True).any())


def own_name(original: str) -> str:
    """The name as written, in lower snake case and without its group; a term of the loss keeps saying so."""
    stem = [w for w in words(original) if w not in GROUPS] or ["value"]
    rest = [w for w in stem if w not in ("loss", "losses")]
    if identify(original).canonical in ("loss", "mse", "nll") and rest:
        return "loss/" + "_".join(rest)
    if identify(original).canonical.startswith("memory"):
        return "memory/" + "_".join(w for w in stem if w not in ("mem", "memory"))
    return "_".join(stem)


def group_or(default: str | None, name: Name) -> str:
    """The group that a name states, else the default, else train."""
    return name.group or default or TRAIN


__all__ = ["MAX_SERIES", "MAX_VALUES", "TRAIN", "VALIDATION", "Key", "Recorder", "group_or", "own_name"]
