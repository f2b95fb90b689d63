"""When the variables of a running program are looked at: at steps 4, 8, 16, ... for a bounded share of its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from traindx_tools.experiments.trace import PARTS
from traindx_tools.finding import Finding
from traindx_tools.live.files_read import FileRead, watch_files
from traindx_tools.on_variables import composed, numbered, text_order
from traindx_tools.on_variables.digits import Digits, lost_digits
from traindx_tools.on_variables.equal import Equal, EqualArrays
from traindx_tools.on_variables.look import Place, take_look
from traindx_tools.on_variables.narrowed import Conversions, Narrowed, would_narrow
from traindx_tools.on_variables.noise_schedule import NoiseSchedule, schedules
from traindx_tools.on_variables.read_values import ReadLooks
from traindx_tools.on_variables.rules import (
    v101_stored_items_change,
    v102_digits_lost,
    v103_signal_left,
    v105_read_and_replaced,
    v106_numbered_apart,
    v107_values_merged,
)
from traindx_tools.on_variables.stored import Stored, StoredItems
from traindx_tools.on_variables.value_numbers import NumberLooks
from traindx_tools.rows.spent import Spent

FIRST_LOOK = 4
DIGITS = 0.2
"""Seconds of this thread that one look may take for the digits of arrays, the nearest variables first."""
LAST_READ = 64
"""Step up to which what was read from files is looked for among the variables."""
AT_ONCE, SHARE = 0.5, 0.01
"""Seconds that looking may take at once, and the share of a longer run."""


class VariablesWatch:
    """Looks, and keeps what was seen."""

    def __init__(self, mark: Callable[..., None] | None = None) -> None:
        """`mark`: writes a record of a kind, for what only files can judge."""
        self._mark = mark
        self.next = FIRST_LOOK
        """The step of the next look."""
        self._spent = Spent(AT_ONCE, SHARE)
        self._items = StoredItems()
        self._arrays = EqualArrays()
        self._equal: dict[tuple[Place, Place], Equal] = {}
        self._stored: dict[tuple[Place, str], Stored] = {}
        self._schedules: list[NoiseSchedule] | None = None
        self._digits: dict[tuple[Place, str], Digits] = {}
        self._merged: dict[tuple[Place, str], Narrowed] = {}
        self.conversions = Conversions()
        self._read, self._numbers = ReadLooks(), NumberLooks()
        self._reading = Spent(AT_ONCE, SHARE)

    def stepped(self, step: int) -> None:
        """A step of the training is complete."""
        if step < self.next:
            return
        self.next = max(2 * self.next, step + 1)
        if step <= LAST_READ and self._reading.open:
            with self._reading.counted():
                read = [FileRead(**r) for r in watch_files().told()]
                self._read.look(read, DIGITS)
                self._numbers.look(read, DIGITS)
        if not self._spent.open:
            return
        self._look_once()
        with self._spent.counted():
            composed.look()
            look = take_look()
            until = time.thread_time() + DIGITS
            for place, array in (*look.arrays, *look.of_jax):
                if time.thread_time() > until:
                    break
                for found in lost_digits(array):
                    self._digits.setdefault((place, found.column), found)
                for merged in would_narrow(array):
                    self._merged.setdefault((place, merged.column), merged)
            for stored in self._items.look(step, look.histories):
                self._stored[stored.place, stored.part] = stored
            equal = self._arrays.look(step, [a for a in look.arrays if a[0] not in look.installed], look.owners)
            self._equal = {(e.one, e.other): e for e in equal} or self._equal

    def _look_once(self) -> None:
        """What is asked near the start alone, within bounds of its own: the looks that come again keep theirs."""
        if self._schedules is None:
            self._schedules = list(schedules())
        if self._mark is not None:
            self._note_numbered(self._mark)
            if told := text_order.seen([FileRead(**r) for r in watch_files().told()]):
                self._mark(PARTS, parts={text_order.PART: told})
            self._mark = None

    def _note_numbered(self, mark: Callable[..., None]) -> None:
        """Writes which names the program gives to the rows of tables that the model holds, near its start."""
        found = numbered.take()
        if found:
            mark(numbered.KIND, tables=[f.as_record() for f in found])

    def findings(self, rank: int = 0) -> Iterator[Finding]:
        """What is wrong with what was seen."""
        yield from v101_stored_items_change.check(tuple(self._stored.values()), tuple(self._equal.values()), rank)
        yield from v103_signal_left.check(self._schedules or (), rank)
        yield from v106_numbered_apart.check(self._numbers.clashes(), rank)
        yield from v105_read_and_replaced.check(self._read.others(), rank)
        held = [(place, None, n) for (place, _), n in self._merged.items()]
        known = [(d.low, d.high, d.step) for d in self._digits.values()]
        yield from v107_values_merged.check([s for s in (*self.conversions.seen, *held) if not any(
            abs(low - s[2].low) <= step and abs(high - s[2].high) <= step for low, high, step in known)], rank)
        yield from v102_digits_lost.check([(place, d) for (place, _), d in self._digits.items()], rank)
