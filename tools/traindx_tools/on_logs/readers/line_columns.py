"""Records of a block of lines, taken column by column: what `TextReading` does line by line, for whole stretches.

A stretch is between two lines that have to be read by themselves (a shape that is met for the first time, a heading, a
note, a bar, a traceback). Within it lines differ in their numbers only, and what one line leaves to the next (the epoch
of a heading, the step that indented lines belong to) is carried on by position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers import arrow_cells
from traindx_tools.on_logs.readers.arrow_cells import Cells
from traindx_tools.on_logs.readers.line_blocks import DIGITS_AS_ZEROS, Block, Group
from traindx_tools.on_logs.readers.line_numbers import NOWHERE, Place, numbers, place
from traindx_tools.on_logs.readers.line_times import times
from traindx_tools.on_logs.readers.names import TRAIN
from traindx_tools.on_logs.readers.recorder import Columns
from traindx_tools.on_logs.readers.unread import SHOWN, Unread
from traindx_tools.on_logs.run import Floats, Ints

if TYPE_CHECKING:
    from traindx_tools.on_logs.readers.text_reading import TextReading, _Shape

FEWEST = 48
"""Lines of a stretch below which taking them one by one is quicker."""
MOST_REFUSED = 3
"""Blocks in which pyarrow did not take a family after which it is asked no more."""
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


@dataclass(eq=False)
class _Rows:
    """The lines of one shape in a block, and their numbers."""

    shape: _Shape
    tokens: tuple[Place, ...]
    """Of each token that the plan needs: step, its total, epoch, its total, then the fields."""
    places: Ints
    block: Block
    numbers: list[Floats] = field(default_factory=list)
    """Empty until they are converted."""

    @cached_property
    def times(self) -> Floats:
        """Seconds of each line, NaN where it has none."""
        at = self.shape.prefix.time_at
        return np.full(len(self.places), math.nan) if at is None else times(self.block, self.places, at)

    def within(self, start: int, end: int) -> slice:
        """Which of the lines lie between two places of the block."""
        return slice(*np.searchsorted(self.places, (start, end)))


def _converted(block: Block, rows: list[_Rows]) -> None:
    """Fills in the numbers of all shapes, a token after the other: one of few lines costs as much as one of many."""
    rows = [r for r in rows if not r.numbers]
    for index in range(max((len(r.tokens) for r in rows), default=0)):
        having = [r for r in rows if index < len(r.tokens)]
        counts = [len(r.places) for r in having]
        starts = block.starts[np.concatenate([r.places for r in having])]
        told = numbers(block.data, starts, [r.tokens[index] for r in having], counts)
        for r, values in zip(having, np.split(told, np.cumsum(counts)[:-1]), strict=True):
            r.numbers.append(values)


def in_columns(shape: _Shape, mask: bytes) -> tuple[Place, ...] | None:
    """Where the numbers of lines of a shape are, which are records and can be taken together; None for others."""
    plan, prefix = shape.plan, shape.prefix
    if not shape.ready or plan.bar or plan.rank is not None or prefix.rank_at is not None or prefix.rank is not None:
        return None
    if shape.commas or shape.divided or not mask.isascii() or len({*shape.keys}) != len(shape.keys):
        return None
    found = [NOWHERE if t < 0 else place(*shape.spans[t], mask[slice(*shape.spans[t])]) for t in shape.tokens]
    known = tuple(p for p in found if p is not None)
    if len(known) < len(found) or any(p.constant == p.constant or (p.end and not p.differs) for p in known[:4]):
        return None  # a step that is no number is for the other way
    return known


class _Families:
    """Lines that differ in their digits only, taken together by pyarrow where it is installed."""

    def __init__(self, reading: TextReading) -> None:
        self.reading = reading
        self._here: bool | None = None
        self._known: dict[bytes, tuple[_Shape, Cells] | None] = {}
        self._refused: dict[tuple[Cells, int], int] = {}

    def taken(self, block: Block) -> tuple[list[_Rows], list[Group]]:
        """What could be taken of a block, and the groups of the other lines."""
        if self._here is False or len(block) < arrow_cells.FEWEST:
            return [], block.groups
        rows: list[_Rows] = []
        rest: list[Ints] = []
        together: dict[tuple[Cells, int], tuple[_Shape, list[Ints]]] = {}
        for bare, places in block.families:
            found = self._cells(bare, block, int(places[0])) if len(places) >= FEWEST else None
            if found is None:
                rest.append(places)
            else:  # with and without an exponent
                shape, cells = found
                together.setdefault((cells, id(shape.plan)), (shape, []))[1].append(places)
        for (cells, plan), (shape, parts) in together.items():
            places = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            enough = len(places) >= arrow_cells.FEWEST and self._refused.get((cells, plan), 0) < MOST_REFUSED
            left = self._rows(block, places, shape, cells, rows) if enough else places
            if enough and len(left) == len(places):
                self._refused[cells, plan] = self._refused.get((cells, plan), 0) + 1
            rest.append(left)
        others = np.sort(np.concatenate(rest)) if rest else np.zeros(0, np.int64)
        return rows, block.groups if not rows else block.groups_among(others)

    def _rows(self, block: Block, places: Ints, shape: _Shape, cells: Cells, rows: list[_Rows]) -> Ints:
        """Adds the lines of a family; those that are left."""
        fits = arrow_cells.with_prefix(block, places, cells.prefix)
        mine = places[fits]
        numbers = arrow_cells.converted(block, mine, cells) if len(mine) else None
        if numbers is None:
            return places
        nothing = np.full(len(mine), math.nan)
        rows.append(_Rows(shape, (), mine, block, [nothing if t < 0 else numbers[t] for t in shape.tokens]))
        return places[~fits]

    def _cells(self, bare: bytes, block: Block, at: int) -> tuple[_Shape, Cells] | None:
        """What is known of a family; it is learned from its first line."""
        if bare not in self._known:
            if self._here is None:
                self._here = arrow_cells.is_here()
            self._known[bare] = self._learned(block, at) if self._here else None
        return self._known[bare]

    def _learned(self, block: Block, at: int) -> tuple[_Shape, Cells] | None:
        line = block.data[block.starts[at]:block.ends[at]]
        mask = line.translate(DIGITS_AS_ZEROS)
        shape = self.reading.known(mask)
        if shape is None:
            shape = self.reading.learn(block.text(at), mask)
        if not line.isascii() or in_columns(shape, mask) is None:
            return None
        cells = arrow_cells.cells_of(line, shape.spans, shape.prefix.end)
        return None if cells is None else (shape, cells)


class _Missed:
    """The lines of a block of which nothing is taken although they hold numbers."""

    def __init__(self, block: Block, silent: list[Ints]) -> None:
        self.block, self.shapes = block, silent
        self.places = np.sort(np.concatenate(silent)) if silent else np.zeros(0, np.int64)

    def told(self, unread: Unread, start: int, end: int) -> None:
        """Notes those between two places."""
        low, high = np.searchsorted(self.places, (start, end)).tolist()
        if low == high:
            return
        at = int(self.places[low])
        unread.add(high - low, self.block.first + at, self.block.text(at))
        for at in self.places[low + 1:high][:SHOWN].tolist() if len(unread.first) < SHOWN else ():
            unread.add(0, self.block.first + at, self.block.text(at))
        for places in self.shapes if unread.wants_more else ():
            one = int(np.searchsorted(places, start))
            if one < len(places) and places[one] < end:
                unread.add(0, self.block.first + int(places[one]), self.block.text(int(places[one])))


class ByColumns:
    """Reads blocks for a `TextReading`."""

    def __init__(self, reading: TextReading) -> None:
        self.reading = reading
        self._suited: dict[bytes, tuple[Place, ...] | None] = {}
        self._families = _Families(reading)

    def take(self, block: Block) -> None:
        """Reads a block of lines."""
        first, alone, rows, silent = self._sorted(block)
        _converted(block, rows)
        missed = _Missed(block, silent)
        start = 0
        for at in (*alone.tolist(), len(block)):
            self._stretch(block, rows, start, at, missed)
            if at < len(block):
                self._one(block, at, first)
            start = at + 1

    def _sorted(self, block: Block) -> tuple[dict[int, _Shape], Ints, list[_Rows], list[Ints]]:
        """The lines with shapes that are met for the first time, all that are read by themselves, the records, and
        those of which nothing is taken although they hold numbers."""
        first: dict[int, _Shape] = {}
        alone: list[Ints] = [block.long]
        rows, rest = self._families.taken(block)
        silent: list[Ints] = []
        for mask, places in rest:
            shape = self.reading.known(mask)
            if shape is None:
                at = int(places[0])
                shape = self.reading.learn(block.text(at), mask)
                if self.reading.known(mask) is None:
                    alone.append(places)
                    first[at] = shape
                    continue
            if mask not in self._suited:
                self._suited[mask] = in_columns(shape, mask)
                if self._suited[mask] is None:  # it may begin a table, or end one
                    first[int(places[0])] = shape
                    alone.append(places[:1])
            tokens = self._suited[mask]
            if tokens is not None:
                rows.append(_Rows(shape, tokens, places, block))
            elif not shape.silent:
                alone.append(places)
            elif shape.unread:
                silent.append(places)
        return first, np.unique(np.concatenate(alone)), rows, silent

    def _one(self, block: Block, at: int, first: dict[int, _Shape]) -> None:
        number, text = block.first + at, block.text(at)
        if at in first:
            self.reading.lines += 1
            self.reading.whole(first[at], number, text)
        else:
            self.reading.line(number, text)

    def _stretch(self, block: Block, rows: list[_Rows], start: int, end: int, missed: _Missed) -> None:
        """The lines from `start` to `end`, of which none has to be read by itself."""
        short = end - start < FEWEST
        while start < end and (short or not self.reading.calm):
            if block.ends[start] > block.starts[start]:
                self.reading.line(block.first + start, block.text(start))
            start += 1
        if start >= end:
            return
        self.reading.lines += int(block.filled[end] - block.filled[start])
        missed.told(self.reading.unread, start, end)
        parts = [(r, r.within(start, end)) for r in rows]
        parts = sorted(((r, s) for r, s in parts if s.start < s.stop), key=lambda p: int(p[0].places[p[1].start]))
        count = sum((s.stop - s.start) * len(r.shape.keys) for r, s in parts)
        recorder = self.reading.recorder
        plain = all(r.shape.plain for r, _ in parts if self.reading.columns_of(r.shape))
        if not plain or (not recorder.full and not recorder.has_room(count)):
            for at in np.sort(np.concatenate([r.places[s] for r, s in parts])).tolist():
                self.reading.lines -= 1
                self.reading.line(block.first + at, block.text(at))
        elif parts:
            _Stretch(self.reading, block, parts).take()


class _Stretch:
    """Records of several shapes that follow each other, with nothing between them that counts."""

    def __init__(self, reading: TextReading, block: Block, parts: list[tuple[_Rows, slice]]) -> None:
        self.reading, self.block, self.parts = reading, block, parts
        places = np.concatenate([r.places[s] for r, s in parts])
        self.order = np.argsort(places, kind="stable") if len(parts) > 1 else np.arange(len(places))
        self.lines = places[self.order] + block.first
        self.records = np.empty(len(places), np.int64)
        self.records[self.order] = np.arange(len(places))

    def _token(self, index: int) -> Floats:
        return np.concatenate([r.numbers[index][s] for r, s in self.parts])[self.order]

    def _each(self, values: list[bool]) -> Mask:
        """What holds for each shape, laid over its lines."""
        return self._laid(np.array(values, np.bool_))

    def _laid(self, values: NDArray[T]) -> NDArray[T]:
        return np.asarray(np.repeat(values, [s.stop - s.start for _, s in self.parts])[self.order])

    def take(self) -> None:
        """Adds the records and carries the state of the reading on."""
        from traindx_tools.on_logs.readers.text_reading import SLOTS, under

        reading = self.reading
        plans = [r.shape.plan for r, _ in self.parts]
        groups = [r.shape.keys[0].group for r, _ in self.parts]
        counted = self._each([p.step is not None for p in plans])
        dated = self._each([p.epoch is not None for p in plans])
        indented = self._each([r.shape.indented for r, _ in self.parts])
        train = self._each([g == TRAIN for g in groups])
        slots = [-1 if p.step is None else p.step.sureness + SLOTS[g] for p, g in zip(plans, groups, strict=True)]
        slot = self._laid(np.array(slots, np.int8))
        totals = self._token(3)
        if (last := np.flatnonzero(totals == totals)).size:
            reading.counters.epoch_total = float(totals[last[-1]])
        epoch = self._epochs(self._token(2), dated, train)
        step, headed = self._steps(self._token(0), counted, dated, indented, train)
        sureness, end = reading.head
        slot = np.where(headed, self._laid(np.array([under(sureness, g) for g in groups], np.int8)), slot)
        columns = [reading.columns_of(r.shape) for r, _ in self.parts]
        if reading.recorder.full:
            return
        times = np.concatenate([r.times[s] for r, s in self.parts])[self.order]
        reading.recorder.append_all(self.lines, step, epoch, times, self._values(columns))
        reading.counters.slot.frombytes(slot.tobytes())
        reading.counters.total.frombytes(np.where(headed, end, self._token(1)).tobytes())

    def _values(self, columns: list[list[Columns | None]]) -> list[tuple[Columns | None, Ints, Floats]]:
        """(where the values go, records counted from the first here, values) of each field of each shape."""
        found, at = [], 0
        for (rows, part), own in zip(self.parts, columns, strict=True):
            records = self.records[at:at + part.stop - part.start]
            at += part.stop - part.start
            for i, column in enumerate(own):
                values = rows.numbers[4 + i][part]
                found.append((column, records, values * rows.shape.factors[i] if rows.shape.factors else values))
        return found

    def _epochs(self, stated: Floats, dated: Mask, train: Mask) -> Floats:
        reading = self.reading
        trained = np.flatnonzero(dated & train)
        if trained.size:
            reading.trained = float(stated[trained[-1]])
        if math.isnan(reading.epoch):
            return stated
        told = np.maximum.accumulate(np.where(dated, np.arange(len(dated)), -1))
        filled = np.where(told >= 0, stated[np.maximum(told, 0)], reading.epoch)
        reading.epoch = float(filled[-1])
        return filled

    def _steps(self, stated: Floats, counted: Mask, dated: Mask,
               indented: Mask, train: Mask) -> tuple[Floats, Mask]:
        """The step of each line: its own, that of the heading above, or that of the line that it is indented below;
        and which of them have that of the heading."""
        reading = self.reading
        heads = np.maximum.accumulate(np.where(counted & ~indented, np.arange(len(counted)), -1))
        above = np.where(heads >= 0, np.where(train[np.maximum(heads, 0)], stated[np.maximum(heads, 0)], math.nan),
                         reading.above)
        heading = np.where(heads >= 0, math.nan, reading.step)
        headed = ~counted & ~np.isnan(heading)
        step = np.where(counted, stated, np.where(headed, heading, np.where(indented & ~dated, above, math.nan)))
        reading.step, reading.above = float(heading[-1]), float(above[-1])
        return step, headed
