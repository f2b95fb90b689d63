"""Which line of the user's code changes something: each of its lines is followed, for one call."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from traindx_tools.on_variables.roots import is_users

SECONDS = 0.5
"""After which nothing more is followed."""


class WritingLine:
    """Between `begin` and `end`: asks after each line of user code whether it has happened. Does nothing beside a
    debugger or a measurement of coverage, whose trace function is left in its place."""

    def __init__(self, happened: Callable[[], bool]) -> None:
        self._happened = happened
        self._until = 0.0
        self._last: dict[int, tuple[str, int]] = {}
        self.found: tuple[str, int] | None = None

    def begin(self) -> None:
        """Follows what this thread calls from here on."""
        if sys.gettrace() is None:
            self._until = time.perf_counter() + SECONDS
            sys.settrace(self._called)

    def end(self) -> None:
        """Follows no more."""
        if sys.gettrace() == self._called:
            sys.settrace(None)

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if is_users(frame.f_code.co_filename) and self.found is None else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.found is not None or time.perf_counter() > self._until:
            return None
        before = self._last.pop(id(frame), None)
        if before is not None and self._happened():
            self.found = before  # a line that calls has been found in the call already, where that is the user's
            return None
        if event == "line":
            self._last[id(frame)] = frame.f_code.co_filename, frame.f_lineno
        return self._line
