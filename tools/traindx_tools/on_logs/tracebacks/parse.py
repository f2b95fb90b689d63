"""Errors of a log: every traceback, fatal line and warning that matters, repeats counted, in one pass.

Memory is bounded by the number of distinct errors, time is linear in the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.run import ErrorEvent
from traindx_tools.on_logs.tracebacks import fatal_lines, warning_lines
from traindx_tools.on_logs.tracebacks.blocks import TracebackReader
from traindx_tools.on_logs.tracebacks.exception_lines import logged_exception
from traindx_tools.on_logs.tracebacks.lines import Line, clean
from traindx_tools.on_logs.tracebacks.native import NativeReader
from traindx_tools.on_logs.tracebacks.repeats import Repeats
from traindx_tools.on_logs.tracebacks.rich_boxes import Boxes

_MOST_STREAMS = 4_096
_MOST_SHAPES, _LONGEST_SHAPE = 20_000, 500
_DIGITS = bytes.maketrans(b"123456789", b"000000000")

_SPEAKS = (
    "rror", "raceback", 'File "', "ssertion", "xception", "Warning", "warning",
    "illed", "SIG", "LIMIT", "CANCELLED", "imeout",
    "imed out", "fault", "atal", "terminate called", "borted", "failed", "EXHAUSTED", "memory", "onitoredBarrier",
    "NCCL WARN", "xitcode", "exit", "eturn code", "eturncode", "eturn_code", "xhausted", "watchdog", "encountered in",
    "nterrupt", "StopIteration", "oom", "OOM", "\u256d",
    "Token indices", "newly initialized", "were not used when", "OVERFLOW!", "radient overflow", "onfinite grad",
    "finite grad", "`loss_type=", "find_unused", "Grad strides", "grad.sizes", "Was asked to",
)
"""Every error line holds one of these; most lines of a log hold none and are passed over quickly."""


def read_errors(lines: Iterable[tuple[int, str]], source: str) -> tuple[ErrorEvent, ...]:
    """The errors of a log given as (line number, text) pairs, ordered by line; repeats are one event with a count.

    `source` is the artifact's name as the user gave it. Never raises on any text; unfinished tracebacks come out as
    events of type "TracebackCut".
    """
    errors = ErrorReading(source)
    for number, text in lines:
        errors.line(number, text)
    return errors.finish()


class ErrorReading:
    """Reads the lines of one log, each or a block at a time, for its errors."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._repeats = Repeats()
        self._streams: dict[str | None, TracebackReader] = {}
        self._native = NativeReader(source)
        self._boxes = Boxes()
        self._asserts: dict[str, list[int]] = {}
        self._under_way: set[str | None] = set()
        self._warned: ErrorEvent | None = None
        self._busy = False
        self._shapes: dict[bytes, bool] = {}
        self._families: dict[bytes, bool] = {}

    def line(self, number: int, text: str) -> None:
        """Reads one line."""
        if self._busy or self._speaks(text):
            for line in self._boxes.feed(clean(number, text)):
                self._line(line)
            self._busy = (bool(self._under_way) or self._warned is not None or not self._native.idle
                          or not self._boxes.idle)
        else:
            self._repeats.ordinary_lines += 1

    def block(self, block: Block) -> None:
        """Reads a block of lines: those between errors, of shapes that say nothing of any, are only counted."""
        speaking = [places for bare, places in block.families if self._of_error(bare)]
        alone = np.unique(np.concatenate([block.long, *speaking]))
        at = 0
        while at < len(block):
            if not self._busy:
                after = int(np.searchsorted(alone, at))
                place = int(alone[after]) if after < len(alone) else len(block)
                self._repeats.ordinary_lines += int(block.filled[place] - block.filled[at])
                at = place
            if at < len(block):
                if block.ends[at] > block.starts[at]:
                    self.line(block.first + at, block.text(at))
                at += 1

    def _of_error(self, bare: bytes) -> bool:
        """Whether lines that are so but for their digits may speak of an error: no word of `_SPEAKS` holds a digit."""
        known = self._families.get(bare)
        if known is None:
            known = any(word in bare.decode("utf-8", "replace") for word in _SPEAKS)
            if len(self._families) < _MOST_SHAPES and len(bare) <= _LONGEST_SHAPE:
                self._families[bare] = known
        return known

    def finish(self) -> tuple[ErrorEvent, ...]:
        """The errors, ordered by line."""
        for reader in self._streams.values():
            self._add_all(reader.close())
        self._add_all(self._native.close())
        if self._warned is not None:
            self._repeats.add(self._warned)
        self._add_asserts()
        return self._repeats.events()

    def _speaks(self, text: str) -> bool:
        """Whether a word of `_SPEAKS` is in a line; lines that differ in digits only are looked at once."""
        mask = text.encode("utf-8", "surrogatepass").translate(_DIGITS)
        known = self._shapes.get(mask)
        if known is None:
            known = any(word in text for word in _SPEAKS)
            if len(self._shapes) < _MOST_SHAPES and len(mask) <= _LONGEST_SHAPE:
                self._shapes[mask] = known
        return known

    def _line(self, line: Line) -> None:
        if self._warned is not None and self._echo(line):
            return
        if self._assert(line):
            return
        if self._native.feed(line):
            return
        self._add_all(self._native.take())
        if line.stream in self._under_way and self._feed(line):
            return
        self._start(line)

    def _feed(self, line: Line) -> bool:
        reader = self._streams[line.stream]
        consumed = reader.feed(line.number, line.text)
        self._add_all(reader.take())
        if reader.idle:
            self._under_way.discard(line.stream)
        else:
            self._under_way.add(line.stream)
        return consumed

    def _start(self, line: Line) -> None:
        if line.stream not in self._streams and len(self._streams) < _MOST_STREAMS:
            self._streams[line.stream] = TracebackReader(self._source, line.rank)
        reader = self._streams.get(line.stream)
        if reader is None or not reader.idle or not self._feed(line):
            self._single(line)

    def _assert(self, line: Line) -> bool:
        """Asserts come from the device and may fall into the middle of a traceback that the host prints."""
        if "Assertion `" in line.text:
            text = fatal_lines.cuda_assert(line.text)
            if text is not None:
                self._count_assert(text, line)
                return True
        return False

    def _count_assert(self, text: str, line: Line) -> None:
        seen = self._asserts.get(text)
        if seen is None:
            if len(self._asserts) < 64:
                self._asserts[text] = [line.number, line.number, 1, -1 if line.rank is None else line.rank]
            return
        seen[1] = line.number
        seen[2] += 1

    def _single(self, line: Line) -> None:
        text = line.text
        type_ = fatal_lines.fatal_type(text)
        named = None if type_ is not None and type_ != fatal_lines.CUDA_ERROR else logged_exception(text)
        if named is not None and type_ is None and not _plausible(text):
            named = None
        if named is not None:
            self._event("exception", named[0], named[1], line)
        elif type_ is not None:
            self._native.begin(type_, line)
            self._add_all(self._native.take())
        else:
            warned = warning_lines.warning_of(text)
            if warned is not None:
                self._warned = ErrorEvent("warning", warned[0], warned[1][:4000], self._source, line.number,
                                          line.number, warned[2], rank=line.rank)
            else:
                self._repeats.ordinary_lines += 1

    def _echo(self, line: Line) -> bool:
        """Settles the warning of the line before: Python prints the source line that warned, indented, below it."""
        event, self._warned = self._warned, None
        assert event is not None, "only called with a warning under way"
        echoes = bool(event.frames) and line.text.startswith("  ") and line.rank == event.rank
        if echoes:
            frame = replace(event.frames[-1], code=line.text.strip()[:200])
            event = replace(event, frames=(*event.frames[:-1], frame), end_line=line.number)
        self._repeats.add(event)
        return echoes

    def _event(self, kind: str, type_: str, message: str, line: Line) -> None:
        self._repeats.add(ErrorEvent(kind, type_, message[:4000], self._source, line.number, line.number,
                                     rank=line.rank))

    def _add_all(self, events: Iterable[ErrorEvent]) -> None:
        for event in events:
            self._repeats.add(event)

    def _add_asserts(self) -> None:
        for text, (first, last, count, rank) in self._asserts.items():
            self._repeats.add(ErrorEvent("fatal", fatal_lines.CUDA_ASSERT, text, self._source, first, first,
                                         rank=None if rank < 0 else rank, count=count, last_line=last))


def _plausible(text: str) -> bool:
    """A mention of an exception is one only where nothing says that it is documentation or a test."""
    return not text.lstrip().startswith(("#", ">>>", "except ", "raise ", "//", "*"))
