"""Records of a block of lines, taken column by column: what `TextReading` does line by line, for whole stretches.

A stretch is between two lines that have to be read by themselves (a shape that is met for the first time, a heading, a
note, a bar, a traceback). Within it lines differ in their numbers only, and what one line leaves to the next (the epoch
of a heading, the step that indented lines belong to) is carried on by position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers import named_digits
from traindx_tools.on_logs.readers.line_blocks import Block, Group
from traindx_tools.on_logs.readers.line_families import Families, Rows, in_columns
from traindx_tools.on_logs.readers.line_numbers import Place, numbers
from traindx_tools.on_logs.readers.names import TRAIN
from traindx_tools.on_logs.readers.recorder import Columns
from traindx_tools.on_logs.readers.unread import SHOWN, Unread
from traindx_tools.on_logs.run import Floats, Ints

if TYPE_CHECKING:
    from traindx_tools.on_logs.readers.line_shapes import Shape
    from traindx_tools.on_logs.readers.text_reading import TextReading

FEWEST = 48
"""Lines of a stretch below which taking them one by one is quicker."""
_IN_A_NAME = re.compile(rb"[A-Za-z_]0")
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


def _converted(block: Block, rows: list[Rows]) -> None:
    """Fills in the numbers of all shapes, a token after the other: one of few lines costs as much as one of many."""
    rows = [r for r in rows if not r.numbers]
    for index in range(max((len(r.tokens) for r in rows), default=0)):
        having = [r for r in rows if index < len(r.tokens)]
        counts = [len(r.places) for r in having]
        starts = block.starts[np.concatenate([r.places for r in having])]
        told = numbers(block.data, starts, [r.tokens[index] for r in having], counts)
        for r, values in zip(having, np.split(told, np.cumsum(counts)[:-1]), strict=True):
            r.numbers.append(values)


def _scaled(rows: Iterable[Rows]) -> None:
    """Counters that are written in thousands or millions, as counts."""
    for r in rows:
        for i, scale in enumerate(r.shape.scales):
            if scale != 1.0:
                r.numbers[i] = np.round(r.numbers[i] * scale)


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
        self._families = Families(reading)

    def take(self, block: Block) -> None:
        """Reads a block of lines."""
        first, alone, rows, silent = self._sorted(block)
        _converted(block, rows)
        _scaled(rows)
        missed = _Missed(block, silent)
        start = 0
        for at in (*alone.tolist(), len(block)):
            self._stretch(block, rows, start, at, missed)
            if at < len(block):
                self._one(block, at, first)
            start = at + 1

    def _sorted(self, block: Block) -> tuple[dict[int, Shape], Ints, list[Rows], list[Ints]]:
        """The lines with shapes that are met for the first time, all that are read by themselves, the records, and
        those of which nothing is taken although they hold numbers."""
        first: dict[int, Shape] = {}
        rows, rest = self._families.taken(block)
        if block.is_one_family:
            return first, np.zeros(0, np.int64), rows, []
        alone: list[Ints] = [block.long]
        silent: list[Ints] = []
        for mask, places in self._by_names(block, rest):
            shape = self.reading.known(mask)
            if shape is None:
                at = int(places[0])
                shape = self.reading.learn(block.text(at), mask, len(places))
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
                rows.append(Rows(shape, tokens, places, block))
            elif not shape.silent:
                alone.append(places)
            elif shape.unread:
                silent.append(places)
        return first, np.unique(np.concatenate(alone)), rows, silent

    def _by_names(self, block: Block, groups: Iterable[Group]) -> Iterator[Group]:
        """The groups; one whose names hold digits as a group for each name."""
        for mask, places in groups:
            shape = self.reading.known(mask)
            if shape is None and _IN_A_NAME.search(mask) is not None:
                shape = self.reading.learn(block.text(int(places[0])), mask)
            if shape is None or not shape.named or not mask.isascii():
                yield mask, places
                continue
            data = np.frombuffer(block.data, np.uint8)
            here = data[block.starts[places][:, None] + np.array(shape.named)]
            kinds, which = np.unique(here, axis=0, return_inverse=True)
            for i, told in enumerate(kinds):
                own = told.tobytes()
                yield mask if own == shape.digits else named_digits.key(mask, own), places[which.reshape(-1) == i]

    def _one(self, block: Block, at: int, first: dict[int, Shape]) -> None:
        number, text = block.first + at, block.text(at)
        if at in first:
            self.reading.lines += 1
            self.reading.whole(first[at], number, text)
        else:
            self.reading.line(number, text)

    def _stretch(self, block: Block, rows: list[Rows], start: int, end: int, missed: _Missed) -> None:
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

    def __init__(self, reading: TextReading, block: Block, parts: list[tuple[Rows, slice]]) -> None:
        self.reading, self.block, self.parts = reading, block, parts
        self.order: Ints | None = None
        if len(parts) == 1:
            rows, part = parts[0]
            self.lines = rows.places[part] + block.first
            self.records = np.arange(len(self.lines))
            return
        places = np.concatenate([r.places[s] for r, s in parts])
        self.order = np.argsort(places, kind="stable")
        self.lines = places[self.order] + block.first
        self.records = np.empty(len(places), np.int64)
        self.records[self.order] = np.arange(len(places))

    def _in_order(self, of_part: list[NDArray[T]]) -> NDArray[T]:
        """What each part says of its lines, in the order of the lines."""
        return of_part[0] if self.order is None else np.concatenate(of_part)[self.order]

    def _token(self, index: int) -> Floats:
        return self._in_order([r.numbers[index][s] for r, s in self.parts])

    def _each(self, values: list[bool]) -> Mask:
        """What holds for each shape, laid over its lines."""
        return self._laid(np.array(values, np.bool_))

    def _laid(self, values: NDArray[T]) -> NDArray[T]:
        return self._in_order([np.full(s.stop - s.start, v) for v, (_, s) in zip(values, self.parts, strict=True)])

    def take(self) -> None:
        """Adds the records and carries the state of the reading on."""
        from traindx_tools.on_logs.readers.text_reading import SLOTS, under

        reading = self.reading
        if len(self.parts) == 1 and math.isnan(reading.epoch):
            rows, part = self.parts[0]
            if not rows.shape.indented and (rows.shape.plan.step is not None or math.isnan(reading.step)):
                self._take_alike(rows, part)
                return
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
        times = self._in_order([r.times[s] for r, s in self.parts])
        total = np.where(headed, end, self._token(1))
        reading.recorder.append_all(self.lines, step, epoch, times, self._values(columns), beside=(slot, total))

    def _take_alike(self, rows: Rows, part: slice) -> None:
        """`take` for lines of one shape that say themselves where they stand."""
        from traindx_tools.on_logs.readers.text_reading import SLOTS

        reading, plan, group = self.reading, rows.shape.plan, rows.shape.keys[0].group
        step, total, epoch, totals = (rows.numbers[i][part] for i in range(4))
        if plan.epoch is not None:
            if (last := np.flatnonzero(totals == totals)).size:
                reading.counters.epoch_total = float(totals[last[-1]])
            if group == TRAIN:
                reading.trained = float(epoch[-1])
        if plan.step is not None:
            reading.step, reading.above = math.nan, float(step[-1]) if group == TRAIN else math.nan
        slot = np.broadcast_to(np.int8(-1 if plan.step is None else plan.step.sureness + SLOTS[group]), len(step))
        columns = [reading.columns_of(rows.shape)]
        if not reading.recorder.full:
            reading.recorder.append_all(self.lines, step, epoch, rows.times[part], self._values(columns),
                                        beside=(slot, total))

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
        nothing = np.zeros(len(counted), np.bool_)
        if counted.all() and not indented.any():
            reading.step, reading.above = math.nan, float(stated[-1]) if train[-1] else math.nan
            return stated, nothing
        if not counted.any() and math.isnan(reading.step):
            return np.where(indented & ~dated & train, reading.above, math.nan), nothing
        heads = np.maximum.accumulate(np.where(counted & ~indented, np.arange(len(counted)), -1))
        above = np.where(heads >= 0, np.where(train[np.maximum(heads, 0)], stated[np.maximum(heads, 0)], math.nan),
                         reading.above)
        heading = np.where(heads >= 0, math.nan, reading.step)
        headed = ~counted & ~np.isnan(heading)
        below = np.where(indented & ~dated & train, above, math.nan)
        step = np.where(counted, stated, np.where(headed, heading, below))
        reading.step, reading.above = float(heading[-1]), float(above[-1])
        return step, headed
