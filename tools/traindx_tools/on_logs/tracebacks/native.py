"""Fatal lines that go on over several lines: C++ `what():`, faulthandler's frames, the lines after a watchdog's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from traindx_tools.on_logs.run import ErrorEvent, Frame
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.frames import frame_of
from traindx_tools.on_logs.tracebacks.lines import Line

_MOST_LINES = 40
_WHAT = re.compile(r"\s*what\(\): +(.*)")
_CURRENT = re.compile(r"Current thread 0x[0-9a-f]+.* \(most recent call first\):")
_ANY_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+.* \(most recent call first\):")
_TYPE = re.compile(r"instance of '([^']{1,200})'")
_OPEN = {fatal_lines.NATIVE, fatal_lines.PYTHON_FATAL, fatal_lines.SEGFAULT, fatal_lines.HANG_DUMP}


@dataclass
class _Open:
    type: str
    line: Line
    end_line: int
    message: list[str]
    frames: list[Frame] = field(default_factory=list)
    collecting: bool = False
    lines: int = 0


class NativeReader:
    """Takes fatal lines and those that belong to them; one at a time is under way."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: _Open | None = None
        self._done: list[ErrorEvent] = []

    @property
    def idle(self) -> bool:
        """Whether no event is under way."""
        return self._open is None

    def begin(self, type_: str, line: Line) -> None:
        """Start a fatal event at `line`; the one under way is complete."""
        self._finish()
        self._open = _Open(type_, line, line.number, [line.text.strip()])

    def feed(self, line: Line) -> bool:
        """Whether `line` belongs to the event under way."""
        if self._open is None:
            return False
        opened = self._open
        opened.lines += 1
        if opened.type not in _OPEN or opened.lines > _MOST_LINES or line.stream != opened.line.stream:
            self._finish()
            return False
        return self._native_exception(line) if opened.type == fatal_lines.NATIVE else self._thread_dump(line)

    def _native_exception(self, line: Line) -> bool:
        assert self._open is not None
        what = _WHAT.match(line.text)
        if what is None and (self._open.lines == 1 or not line.text.strip() or fatal_lines.fatal_type(line.text)):
            self._finish()
            return False
        self._open.message.append(what[1] if what else line.text[:1000])
        self._open.end_line = line.number
        return True

    def _thread_dump(self, line: Line) -> bool:
        assert self._open is not None
        frame = frame_of(line.text)
        if frame is not None:
            if self._open.collecting and len(self._open.frames) < 200:
                self._open.frames.insert(0, frame)
            self._open.end_line = line.number
            return True
        if _ANY_THREAD.match(line.text):
            first = self._open.type == fatal_lines.HANG_DUMP and not self._open.frames
            self._open.collecting = _CURRENT.match(line.text) is not None or first
            return True
        if not line.text.strip():
            return True
        self._finish()
        return False

    def take(self) -> list[ErrorEvent]:
        """The events completed since the last call."""
        done, self._done = self._done, []
        return done

    def close(self) -> list[ErrorEvent]:
        """The events that the end of the log completes."""
        self._finish()
        return self.take()

    def _finish(self) -> None:
        if self._open is None:
            return
        opened, self._open = self._open, None
        type_, message = opened.type, opened.message
        if type_ == fatal_lines.NATIVE:
            named = _TYPE.search(message[0])
            type_ = named[1] if named else type_
            message = message[1:] or message
        text = "\n".join(message).strip()[:4000]
        self._done.append(ErrorEvent("fatal", type_, text, self._source, opened.line.number, opened.end_line,
                                     tuple(opened.frames), rank=opened.line.rank))
