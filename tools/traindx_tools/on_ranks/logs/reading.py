"""One file of a job, read line by line in bounded memory: what each of its processes told.

A line's shape (each digit as 0) is worked out once; a record of a known shape costs a lookup and its numbers.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from functools import cache

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.launchers import NOBODY, Whose, form_of
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_ranks.logs import words
from traindx_tools.on_ranks.logs.claims import ClaimReader, running_in
from traindx_tools.on_ranks.logs.errors_in_lines import ErrorReader
from traindx_tools.on_ranks.logs.flight_recorder import told_by_recorder
from traindx_tools.on_ranks.logs.speaking import speaks_of_error
from traindx_tools.on_ranks.logs.told import (
    LONGEST,
    MOST_COUNTS,
    MOST_EVENTS,
    MOST_SETTINGS,
    MOST_WAITS,
    Attempt,
    Event,
    FileTold,
    Operation,
    Operations,
    Stream,
    Thin,
    Wait,
)
from traindx_tools.on_ranks.logs.words import COLLECTIVE, RECORD, SETTING, SPEAKS, Plan

BLOCK = 1 << 20
MOST_LINE = 1 << 16
"""Bytes of a line that are looked at."""
MOST_SHAPES, LONGEST_SHAPE = 20_000, 400
MOST_STREAMS = 20_000
FIRST_LINES = 200
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")

Key = tuple[int | None, int | None, str | None]


def read_file(source: Source) -> FileTold:
    """What one file tells. Never raises on any content: what cannot be read stands in `note`."""
    told = FileTold(source.name)
    try:
        if recorded := told_by_recorder(source):
            told.streams.append(recorded)
            return told
        if is_binary(source.head):
            told.note = "binary data, no log"
        else:
            _Reader(source, told).read()
            told.note = source.remark or ("" if told.bytes else "an empty file")
            if source.damaged:  # where it breaks off is not how its rank ended
                told.streams, told.note = [], f"not compared with the other ranks: {source.damaged}"
    except (OSError, EOFError, zlib.error) as failed:
        told.note = f"read to line {told.lines:,} only: {getattr(failed, 'strerror', None) or failed}"
    return told


def blocks(source: Source, told: FileTold) -> Iterator[list[bytes]]:
    """The lines, a block at a time; of a line without end the first 64 KiB."""
    rest = b""
    with source.text() as stream:
        while data := stream.read(BLOCK):
            told.bytes += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > MOST_LINE:
                rest = rest[:MOST_LINE]
            yield lines
    if rest:
        yield [rest]


@cache
def _shapes(form: str) -> dict[bytes, Plan]:
    """What is known of the shapes of lines with this prefix: the files of a job share it, a process reads many."""
    return {}


class _Reader:
    def __init__(self, source: Source, told: FileTold) -> None:
        self._source, self._told = source, told
        self._form = form_of(source.text_head.split(b"\n")[:FIRST_LINES])
        told.form = self._form.name
        self._streams: dict[Key, _Process] = {}
        self._plans = _shapes(self._form.name)
        self._claims = ClaimReader(source.name)
        self._own = self._process(NOBODY)

    def read(self) -> None:
        for lines in blocks(self._source, self._told):
            self._block(lines)
        for process in self._streams.values():
            process.close(self._told.lines)
        self._told.streams = [p.stream for p in self._streams.values() if p.spoke]

    def _block(self, lines: list[bytes]) -> None:
        number, plans, form = self._told.lines, self._plans, self._form
        simple, own = not form.name, self._own
        for line in lines:
            number += 1
            if b"\x1b" in line:
                line = _ANSI.sub(b"", line)
            if b"\r" in line:
                line = line.rstrip(b"\r").rpartition(b"\r")[2]
            shape = line.translate(_DIGITS)
            plan = plans.get(shape)
            if plan is not None and simple and line[:1] != b"[" and plan.rank is None and plan.kind != SPEAKS:
                own.quick(plan, line, number)
                continue
            whose = form.whose(line) if not simple or line[:1] == b"[" else NOBODY
            if plan is None:
                plan = words.plan_of(line[:MOST_LINE].decode("latin-1"), whose.start)
                if len(plans) < MOST_SHAPES and len(shape) <= LONGEST_SHAPE:
                    plans[shape] = plan
            self._line(number, line, plan, whose)
        self._told.lines = number

    def _line(self, number: int, line: bytes, plan: Plan, whose: Whose) -> None:
        if plan.rank is not None and whose.rank is None:
            whose = Whose(whose.start, int(line[plan.rank[0]:plan.rank[1]]), whose.local, whose.host)
        process = self._own if whose is NOBODY else self._process(whose)
        if plan.kind != SPEAKS:
            process.quick(plan, line, number, whose.start)
            return
        text = line[whose.start:MOST_LINE].decode("utf-8", "replace")
        message = line[plan.message:MOST_LINE].decode("utf-8", "replace") if plan.message > whose.start else text
        self._told.claims.extend(self._claims.feed(number, text, whose.host or process.stream.host or ""))
        if "CollectiveFingerPrint" in text:
            self._told.claims.extend(running_in(text, self._told.name, number))
        process.line(number, text, message, plan.template)

    def _process(self, whose: Whose) -> _Process:
        key = (whose.rank, whose.local if whose.rank is None else None, whose.host)
        if whose.rank is not None:
            key = (whose.rank, None, None)
        found = self._streams.get(key)
        if found is None:
            if len(self._streams) >= MOST_STREAMS:
                return self._own
            found = _Process(Stream(self._told.name, whose.rank, whose.local, whose.host))
            self._streams[key] = found
        return found


class _Process:
    """The lines of one process of a file, in their order."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.spoke = False
        self.errors = ErrorReader()
        self._again: tuple[int, int | None, bool] | None = None
        self._next: dict[str, tuple[str, int]] = {}
        """Settings of a start that has no record yet."""
        self._resumed = False
        self._last: tuple[int, bytes, int] = (0, b"", 0)
        self._known: dict[bytes, tuple[Operations, Operation]] = {}

    def record(self, plan: Plan, line: bytes, number: int) -> None:
        """A line of metrics."""
        assert plan.step is not None, "a record has a step"
        step = float(line[plan.step[0]:plan.step[1]])
        now = self.stream.now
        if now.records and self._starts_again(now, step):
            now = self._restart(number)
        if not now.records:
            now.first_step = step
        if not (step < now.step):
            now.step, now.step_line = step, number
        now.records += 1
        now.end_line = number
        self.spoke = True
        for name, a, b in plan.values:
            try:
                value = float(line[a:b])
            except ValueError:
                continue
            if not math.isfinite(value):
                if name not in now.bad:
                    now.bad[name] = (step, number, _text(line, plan.message))
                continue
            series = now.series.get(name)
            if series is None:
                series = now.series[name] = Thin()
            series.total += value
            series.count += 1
            if not step % series.stride:
                series.keep(step, value)

    def quick(self, plan: Plan, line: bytes, number: int, start: int = 0) -> None:
        """A line of a shape that says no more than its numbers. `start`: where it begins behind the prefix."""
        if not self.errors.idle:
            text = line[start:MOST_LINE].decode("utf-8", "replace")
            self.line(number, text, text, plan.template)
        elif plan.kind == RECORD:
            self.record(plan, line, number)
        elif plan.message < len(line):
            if plan.kind == COLLECTIVE:
                self._called(plan, line)
            elif plan.kind == SETTING and (self._again is not None or not self.stream.now.records):
                self._settings(line[plan.message:MOST_LINE].decode("utf-8", "replace"), number)
            self._event(plan.template, line, plan.message, number)

    def line(self, number: int, text: str, message: str, template: str) -> None:
        """Any other line. `message`: without time and level."""
        now = self.stream.now
        now.end_line = number
        self.spoke = True
        if not self.errors.idle or speaks_of_error(text):
            now.faults.extend(self.errors.feed(number, text, now))
            self._waits(number, text, now)
            return
        self._said(number, message, now)
        self._event(template, message.encode(), 0, number)

    def _event(self, template: str, line: bytes, start: int, number: int) -> None:
        events = self.stream.now.events
        event = events.get(template)
        if event is not None:
            event.count += 1
        elif len(events) < MOST_EVENTS:
            events[template] = Event(1, self.stream.now.step, number, _text(line, start))
        self._last = number, line, start
        self.spoke = True

    def _called(self, plan: Plan, line: bytes) -> None:
        """A traced collective; lines that differ in the sequence number alone name the same one."""
        assert plan.sequence is not None, "a collective has a number"
        first, last = plan.sequence
        without = line[plan.message:first] + line[last:]
        known = self._known.get(without)
        if known is None:
            called = words.collective_in(line[plan.message:MOST_LINE].decode("utf-8", "replace"))
            if called is None:
                return
            known = self.stream.now.operations.setdefault(called.group, Operations()), called.operation
            if len(self._known) < MOST_SHAPES:
                self._known[without] = known
        known[0].add(int(line[first:last]), known[1])

    def _said(self, number: int, text: str, now: Attempt) -> None:
        if called := words.collective_in(text):
            now.operations.setdefault(called.group, Operations()).add(called.number, called.operation)
            return
        world, rank, host = words.world_in(text), words.rank_in(text), words.host_in(text)
        if world is not None:
            if now.records:
                self._again = (number, world, self._resumed)
            elif now.world is None or world > now.world:
                now.world = world
        if rank is not None and self.stream.rank is None and (world is not None or host is not None):
            self.stream.rank = rank
        if host is not None and self.stream.host is None:
            self.stream.host = host
        self._resumed = self._resumed or (bool(now.records) and words.resumes(text))
        now.resumed = now.resumed or (not now.records and words.resumes(text))
        now.finished = now.finished or words.finishes(text)
        for noun, value in words.counts_in(text):
            key = f"{noun}|{words.template_of(text)}"
            if key in now.counts or len(now.counts) < MOST_COUNTS:
                now.counts.setdefault(key, []).append((value, number))
                del now.counts[key][64:]
        if self._again is not None or not now.records:
            self._settings(text, number)

    def _settings(self, text: str, number: int) -> None:
        kept = self.stream.now.settings if self._again is None else self._next
        for name, value in words.settings_in(text):
            if len(kept) < MOST_SETTINGS:
                kept.setdefault(name, (value, number))

    def _waits(self, number: int, text: str, now: Attempt) -> None:
        called = words.collective_in(text)
        if called is not None and called.waited is not None and len(now.waits) < MOST_WAITS:
            now.waits.append(Wait(called.group, called.number, called.operation, called.waited, number))
        works = words.last_works(text)
        if works is not None and now.waits and now.waits[-1].enqueued is None:
            last = now.waits[-1]
            now.waits[-1] = Wait(last.group, last.number, last.operation, last.seconds, last.line, *works)

    def _starts_again(self, now: Attempt, step: float) -> bool:
        """Whether a new start shows: set up again, or a checkpoint loaded, and the steps fell back."""
        if self._again is not None:
            return step <= now.step or (now.world is not None and self._again[1] != now.world)
        return self._resumed and step < now.step

    def _restart(self, number: int) -> Attempt:
        line, world, resumed = self._again or (number, self.stream.now.world, True)
        self._again, self._resumed = None, False
        self._ended()
        self.stream.now.end_line = line - 1
        self._known.clear()
        self.stream.attempts.append(Attempt(line=line, world=world, resumed=resumed, settings=self._next))
        self._next = {}
        return self.stream.now

    def _ended(self) -> None:
        number, line, start = self._last
        self.stream.now.last = number, _text(line, start)
        self.stream.now.end_line = max(self.stream.now.end_line, number)

    def close(self, number: int) -> None:
        """The end of the file."""
        now = self.stream.now
        now.faults.extend(self.errors.close(now))
        if self._again is not None:  # it started again and never came to a record
            self._restart(number)
        self._ended()


def _text(line: bytes, start: int) -> str:
    return line[start:start + 4 * LONGEST].decode("utf-8", "replace").strip()[:LONGEST]
