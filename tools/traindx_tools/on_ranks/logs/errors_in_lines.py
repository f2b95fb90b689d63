"""Errors of one process, a fault each: tracebacks by their last line and the user's frame, fatal lines as they
stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.on_logs.run import ErrorEvent, Frame
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.exception_lines import exception_line, logged_exception
from traindx_tools.on_logs.tracebacks.frames import frame_of
from traindx_tools.on_logs.tracebacks.incidents import echo_level
from traindx_tools.on_ranks.logs.told import LONGEST, MOST_FAULTS, Attempt, Fault

_LEVEL = re.compile(r"(?i)^\W{0,2}(?:warn(?:ing)?|debug|info)\b")
_MOST_FRAMES = 200
_KINDS = (
    ("device-memory", re.compile(r"OutOfMemoryError|CUDA out of memory|RESOURCE_EXHAUSTED|CUBLAS_STATUS_ALLOC_FAILED")),
    ("host-memory", re.compile(r"OomKiller|MemoryError|Cannot allocate memory|DefaultCPUAllocator")),
    ("segfault", re.compile(r"SegmentationFault|Fatal Python error: Segmentation|SIGSEGV|BusError")),
    ("hardware", re.compile(r"ECC|Xid|NVLink|hardware error|fallen off the bus|unspecified launch failure")),
    ("killed", re.compile(r"^Killed|SIGKILL|-9\b")),
)


def kind_of(type_: str, message: str) -> str:
    """What happened, in a word that findings use."""
    said = f"{type_}: {message}"
    return next((kind for kind, pattern in _KINDS if pattern.search(said)), "exception")


class ErrorReader:
    """Feed it lines that may belong to an error; a traceback ends with the line that names the exception."""

    def __init__(self) -> None:
        self._frames: list[Frame] | None = None
        self._line = 0

    @property
    def idle(self) -> bool:
        """Whether no traceback is under way."""
        return self._frames is None

    def feed(self, number: int, text: str, now: Attempt) -> Iterator[Fault]:
        """The faults that this line completes; at most `MOST_FAULTS` of an attempt."""
        if "Traceback (most recent call last)" in text:
            self._frames, self._line = [], number
            return
        if self._frames is not None:
            yield from self._within(number, text, now)
            return
        type_ = fatal_lines.fatal_type(text)
        named = None if type_ is not None else logged_exception(text)
        if type_ is not None:
            yield from self._fault(now, "fatal", type_, text, number)
        elif named is not None and _LEVEL.match(text) is None:
            yield from self._fault(now, "exception", *named, number)

    def _within(self, number: int, text: str, now: Attempt) -> Iterator[Fault]:
        assert self._frames is not None, "within a traceback"
        frame = frame_of(text)
        if frame is not None:
            self._frames.append(frame)
            del self._frames[:-_MOST_FRAMES]
        elif text[:1].isspace() or not text.strip():
            return
        else:
            frames, self._frames = tuple(self._frames), None
            named = exception_line(text, right_after_frames=True)
            if named is not None:
                yield from self._fault(now, "exception", *named, number, frames)

    def close(self, now: Attempt) -> Iterator[Fault]:
        """A traceback that the end of the log cuts."""
        if self._frames:
            frames, self._frames = tuple(self._frames), None
            yield from self._fault(now, "exception", "TracebackCut", "the log ends within a "
                                                                     "traceback", self._line, frames)

    def _fault(self, now: Attempt, kind: str, type_: str, message: str, number: int,
               frames: tuple[Frame, ...] = ()) -> Iterator[Fault]:
        if len(now.faults) >= MOST_FAULTS:
            return
        event = ErrorEvent(kind, type_, message[:4000], "", number, number, frames)
        user = event.user_frame
        place = f"{user.file}:{user.line} ({user.function})" if user is not None else ""
        said = message.strip()[:LONGEST]
        yield Fault(echo_level(event), kind_of(type_, message), type_, said, number, now.step, place, now.records)
