"""Python tracebacks, put together line by line from one stream of a log.

Chains ("direct cause", "during handling"), tracebacks inside messages (DataLoader workers, spawned processes, Ray,
TorchScript), exception groups, SyntaxError without a header, and the forward frames that anomaly mode prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from traindx_tools.on_logs.run import ErrorEvent, Frame
from traindx_tools.on_logs.tracebacks import messages
from traindx_tools.on_logs.tracebacks.exception_lines import exception_line
from traindx_tools.on_logs.tracebacks.fatal_lines import ends_process
from traindx_tools.on_logs.tracebacks.frames import frame_of, is_carets, jupyter_frame_of

CUT = "TracebackCut"
"""Type of an event whose traceback ends before the line that names the exception."""
ANOMALY = "AnomalyForwardTrace"
"""Type of the warning that holds the forward frames of anomaly mode."""

_MOST_FRAMES = 200
_MOST_FOREIGN_LINES = 60
_ANOMALY = re.compile(r"Error detected in (\w+)\. (?:Traceback of forward call|No forward pass information)")
_ARROW = re.compile(r"-+> ?(\d+) ?(.*)")
_OLD_JUPYTER = re.compile(r"(\S{1,500}\.py|<ipython-input-\S{1,100}>) in (\S.{0,300})$")
_MARGIN = re.compile(r"\s*(?:\||\+-\+-|\+-)(?: |-*)?")
_GROUP_PART = re.compile(r"\s*\+[-+ ]*-{3,}(?: (\d+|\.\.\.) -+)?\s*$")
_SPAWNED = re.compile(r"-- Process (\d+) terminated with the following error")
_PROGRESS_BAR = re.compile(r"%\||it/s|s/it")
_IGNORED = re.compile(r"Exception ignored in\b|--- Logging error ---|Error in atexit\._run_exitfuncs:")
_WRAPPERS = re.compile(r"(?:RemoteTraceback|SimplifiedTraceback)$")
_UNWRAPPED = re.compile(r"(?:.*\.)?JaxStackTraceBeforeTransformation$")


@dataclass
class _Draft:
    """An exception of which not all lines were seen yet."""

    line: int
    end_line: int
    type: str = ""
    message: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    cause: ErrorEvent | None = None
    rank: int | None = None
    header: bool = True


class TracebackReader:
    """Feed it the lines of one stream; `take()` hands over the events that are complete."""

    def __init__(self, source: str, rank: int | None = None) -> None:
        self._source, self._rank = source, rank
        self._ignored_to = 0
        self._done: list[ErrorEvent] = []
        self._handle: Callable[[int, str], bool] = self._idle
        self._reset()

    def _reset(self) -> None:
        self._draft = _Draft(0, 0)
        self._outer: list[_Draft] = []
        self._cause: ErrorEvent | None = None
        self._inner_frames: list[Frame] = []
        self._blank = False
        self._foreign = 0
        self._prefix: re.Pattern[str] | None = None
        self._group: list[ErrorEvent] | None = None
        self._jupyter = False
        self._harmless = False
        self._handle = self._idle

    @property
    def idle(self) -> bool:
        """Whether no traceback is under way."""
        return self._handle == self._idle

    def feed(self, number: int, text: str) -> bool:
        """Take one line; False when it belongs to no traceback."""
        if not self.idle:
            text = self._without_prefix(text)
        return self._handle(number, text)

    def take(self) -> list[ErrorEvent]:
        """The events completed since the last call."""
        done, self._done = self._done, []
        return done

    def close(self) -> list[ErrorEvent]:
        """The events that the end of the log completes, cut-off ones included."""
        if not self.idle:
            self._finish_all()
        return self.take()

    # --- before a traceback

    def _idle(self, number: int, text: str) -> bool:
        if _IGNORED.match(text) is not None:
            self._ignored_to = number + 1
            return True
        self._harmless = number <= self._ignored_to
        anomaly = _ANOMALY.search(text)
        if anomaly is not None:
            self._begin(number)
            self._draft.type, self._draft.message = ANOMALY, [anomaly[1]]
            return True
        if messages.TRACEBACK in text:
            self._begin_with_header(number, text)
            return True
        frame = frame_of(text)
        if frame is None:
            return self._harmless and exception_line(text, right_after_frames=False) is not None
        self._begin(number)
        self._draft.header = False
        self._draft.frames.append(frame)
        return True

    def _begin(self, number: int) -> None:
        self._draft = _Draft(number, number, cause=self._cause)
        self._cause = None
        self._foreign = 0
        self._blank = False
        self._inner_frames = []
        self._handle = self._frames

    def _begin_with_header(self, number: int, text: str) -> None:
        before = text[: text.index(messages.TRACEBACK)]
        self._begin(number)
        label = before.strip()
        if label.endswith("Exception Group"):
            self._group = [] if self._group is None else self._group
        elif label and before.endswith("  ") and exception_line(label, right_after_frames=False):
            self._jupyter = True
        elif self._prefix is None and before and not _PROGRESS_BAR.search(before) and len(before) < 300:
            self._prefix = _shape_of(before)

    def _without_prefix(self, text: str) -> str:
        if self._group is not None and _GROUP_PART.match(text) is None:
            margin = _MARGIN.match(text)
            text = text[margin.end() :] if margin else text
        if self._prefix is not None:
            match = self._prefix.match(text)
            text = text[match.end() :] if match else text
        return text

    # --- inside the frames

    def _frames(self, number: int, text: str) -> bool:
        if messages.TRACEBACK in text:
            if self._draft.header and not self._draft.frames and not self._draft.type:
                return True  # two processes that write into each other
            self._abandon()
            return self._handle(number, text)
        frame = frame_of(text) or (self._jupyter_frame(text) if self._jupyter else None)
        if frame is not None:
            self._add_frame(frame)
            self._draft.end_line = number
            return True
        if not text or is_carets(text) or (text[0].isspace() and self._draft.frames):
            self._code(text)
            return True
        if self._draft.type == ANOMALY:
            self._abandon()
            return text.startswith(" (Triggered internally")
        return self._exception_or_foreign(number, text)

    def _exception_or_foreign(self, number: int, text: str) -> bool:
        arrow = _ARROW.match(text) if self._jupyter else None
        if arrow is not None:
            self._arrow(arrow)
            return True
        named = exception_line(text, right_after_frames=self._foreign == 0 and bool(self._draft.frames))
        if named is not None:
            self._name(number, *named)
            return True
        self._foreign += 1
        if self._foreign > _MOST_FOREIGN_LINES or ends_process(text):
            self._abandon()
        return False

    def _name(self, number: int, type_: str, message: str) -> None:
        self._draft.type, self._draft.message, self._draft.end_line = type_, [message], number
        self._handle = self._message

    def _add_frame(self, frame: Frame) -> None:
        if len(self._draft.frames) >= _MOST_FRAMES:
            del self._draft.frames[_MOST_FRAMES // 2]
        self._draft.frames.append(frame)
        self._foreign = 0

    def _code(self, text: str) -> None:
        if self._draft.frames and not self._draft.frames[-1].code and text.strip() and not is_carets(text):
            code = text.strip()
            arrow = _ARROW.match(code)
            if not self._jupyter:
                self._draft.frames[-1] = replace(self._draft.frames[-1], code=code[:300])
            elif arrow is not None:
                self._arrow(arrow)

    def _jupyter_frame(self, text: str) -> Frame | None:
        old = _OLD_JUPYTER.match(text)
        if old is not None:
            return jupyter_frame_of(f"File {old[1]}:0, in {old[2]}")
        return jupyter_frame_of(text)

    def _arrow(self, match: re.Match[str]) -> None:
        if self._draft.frames:
            last = self._draft.frames[-1]
            self._draft.frames[-1] = replace(last, line=int(match[1][:9]), code=match[2].strip()[:300])

    # --- inside the message

    def _message(self, number: int, text: str) -> bool:
        if messages.TRACEBACK in text:
            return self._header_in_message(number, text)
        if messages.CHAINED.match(text) is not None:
            self._chain()
            return True
        if self._group is not None and _GROUP_PART.match(text) is not None:
            self._next_of_group()
            return True
        if not text.strip():
            self._blank = True
            self._draft.message.append("")
            return True
        return self._message_line(number, text)

    def _message_line(self, number: int, text: str) -> bool:
        frame = frame_of(text)
        if frame is not None:
            self._inner_frames.append(frame)
            return True
        named = exception_line(text, right_after_frames=False) if self._inner_frames and not text[0].isspace() else None
        if named is not None:
            self._nest(number)
            self._draft.frames, self._inner_frames = self._inner_frames[-_MOST_FRAMES:], []
            self._name(number, *named)
            return True
        if exception_line(text, right_after_frames=False) == (self._draft.type, self._draft.message[0]):
            return True  # the same last line of a second process
        too_long = len(self._draft.message) >= messages.MOST_LINES
        if too_long or ends_process(text) or not messages.goes_on(text, after_blank=self._blank):
            self._finish_all()
            return self._handle(number, text)
        if messages.NOISE.match(text) is None or "ChildFailed" in self._draft.type:
            self._draft.message.append(text[:1000])
            self._blank = False
        self._draft.end_line = number
        return True

    def _header_in_message(self, number: int, text: str) -> bool:
        last = next((m for m in reversed(self._draft.message) if m.strip()), "")
        spawned = _SPAWNED.match(last)
        nested = spawned is not None or "Original Traceback" in text or "Traceback of TorchScript" in text
        if nested or _WRAPPERS.search(self._draft.type):
            self._nest(number)
            self._draft.rank = int(spawned[1][:6]) if spawned else None
            return True
        if self._group is not None:
            self._group.append(self._event())
            self._begin(number)
            return True
        self._finish_all()
        return self._handle(number, text)

    def _nest(self, number: int) -> None:
        self._outer.append(self._draft)
        inner = self._inner_frames
        self._begin(number)
        self._inner_frames = inner

    def _next_of_group(self) -> None:
        if self._group is not None and self._draft.type:
            self._group.append(self._event())
            self._draft = _Draft(self._draft.end_line, self._draft.end_line)
            self._handle = self._between

    def _between(self, number: int, text: str) -> bool:
        """Between two exceptions of a group, or after a chain marker: only a header is waited for."""
        if messages.TRACEBACK in text:
            self._begin_with_header(number, text)
            return True
        if frame_of(text) is not None:
            if self._group is not None:
                self._finish_all()
            self._begin(number)
            return self._frames(number, text)
        if not text.strip() or messages.NOISE.match(text) or _GROUP_PART.match(text):
            return True
        named = exception_line(text, right_after_frames=False) if self._group is not None else None
        if named is not None:
            self._begin(number)
            self._name(number, *named)
            return True
        self._foreign += 1
        if self._foreign > 5:
            self._finish_all()
            return self._handle(number, text)
        return False

    def _chain(self) -> None:
        self._cause = self._collapsed()
        self._foreign = 0
        self._handle = self._between

    # --- what comes out

    def _event(self) -> ErrorEvent:
        draft = self._draft
        frames = tuple((draft.frames + self._inner_frames)[-_MOST_FRAMES:])
        self._inner_frames = []
        type_, message = draft.type, messages.joined(draft.message)
        if _UNWRAPPED.match(type_):
            first, _, rest = message.partition("\n")
            type_, first = exception_line(first, right_after_frames=True) or (type_, first)
            message = f"{first}\n{rest}".rstrip()
        kind = "warning" if type_ == ANOMALY or self._harmless else "exception"
        rank = draft.rank if draft.rank is not None else self._rank
        return ErrorEvent(kind, type_, message, self._source, draft.line, draft.end_line, frames, draft.cause, rank)

    def _collapsed(self) -> ErrorEvent:
        """The exception just read, with the exceptions around it that only carried it."""
        event = self._event()
        while self._outer:
            self._draft = self._outer.pop()
            rank = event.rank if self._draft.rank is None else self._draft.rank
            if _WRAPPERS.search(self._draft.type):
                continue
            outer = self._event()
            event = replace(outer, cause=_caused_by(event, outer.cause), end_line=max(outer.end_line, event.end_line),
                            rank=rank)
        if _WRAPPERS.search(event.type) and event.cause is not None:
            return event.cause
        return event

    def _finish_all(self) -> None:
        if self._group is not None:
            if self._draft.type:
                self._group.append(self._event())
            self._done.extend(_group(self._group))
        elif self._draft.type:
            self._done.append(self._collapsed())
        elif self._cause is not None:
            self._done.append(self._cause)
        elif self._outer or (self._draft.header and self._draft.frames):
            self._draft.type = CUT
            self._draft.message = ["the log ends inside this traceback, before the line that names the exception"]
            self._done.append(self._collapsed())
        self._reset()

    def _abandon(self) -> None:
        self._finish_all()


def _caused_by(event: ErrorEvent, cause: ErrorEvent | None) -> ErrorEvent:
    if cause is None:
        return event
    return replace(event, cause=cause if event.cause is None else _caused_by(event.cause, cause))


def _group(events: list[ErrorEvent]) -> list[ErrorEvent]:
    """The group itself, caused by its first exception, then its other exceptions."""
    if len(events) < 2 or events[0].cause is not None:
        return events
    return [replace(events[0], cause=events[1], end_line=max(e.end_line for e in events)), *events[2:]]


def _shape_of(prefix: str) -> re.Pattern[str]:
    """A pattern for a logging prefix whose numbers (time, process) may differ from line to line."""
    parts = re.split(r"\d+", prefix)
    return re.compile(r"\d{1,20}".join(re.escape(p) for p in parts))
