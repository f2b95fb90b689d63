"""What one change did in this process: how often it took hold, where first, and why it could not."""

from __future__ import annotations

import os
import sys
import sysconfig

from traindx_tools.live.notice import say
from traindx_tools.live.session import Session

KIND = "applied"
"""The kind of its records in a rank's file."""

MOST_REASONS = 4
"""Different ones that are kept: a program with more of them has enough to say."""
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


class Ledger:
    """The book of one change. It is written at powers of two, after the first steps, and at the end.

    A process that never trains (a launcher, a worker of a DataLoader) writes nothing: `awake` comes with a first step.
    """

    def __init__(self, change: str, session: Session) -> None:
        self.change, self._session = change, session
        self.times, self.where = 0, ""
        self.problem = ""
        """Why it does not hold, or no longer does: whatever it did before shows nothing."""
        self.unseen = ""
        """What it would take hold of and was not seen at all; told where `not_here` was told nothing."""
        self.foreign = ""
        """The framework that was imported and that it is not for; told where nothing else is."""
        self._not_here: list[str] = []
        self.awake = False
        self._written: tuple[int, str, str] | None = None

    @property
    def off(self) -> bool:
        """It does nothing any more."""
        return bool(self.problem)

    def held(self, where: str = "", times: int = 1) -> None:
        """The change took hold; `where` of the first time is kept, without it the line of the user's code."""
        if not self.times and not self.where:
            self.where = where or user_line()
        before, self.times = self.times, self.times + times
        if self.awake and before.bit_length() != self.times.bit_length():
            self.write()

    def not_here(self, why: str) -> None:
        """It was offered something and left it as it is: what was seen, and why the change does not apply to it."""
        if why not in self._not_here and len(self._not_here) < MOST_REASONS:
            self._not_here.append(why)

    def cannot(self, problem: str) -> None:
        """The change does not hold from here on; the training goes on without it."""
        if not self.problem:
            self.problem = problem
            say(f"the change {self.change} is off: {problem}; the training goes on")
            if self.awake:
                self.write()

    def failed(self, error: Exception) -> None:
        """A fault of ours: the change is off, and says so."""
        self.cannot(f"{type(error).__name__}: {error}" + (f" (after it took hold {self.times} times)" if self.times
                                                         else ""))

    def write(self) -> None:
        """The record as it is now, where it says more than the last one."""
        problem = self.problem
        if not problem and not self.times:
            problem = ("; ".join(self._not_here) or self.unseen or self.foreign
                       or "nothing that it changes was seen in this process")
        state = (self.times, self.where, problem)
        if state != self._written:
            self._written = state
            self._session.recorder.mark(KIND, change=self.change, times=self.times, where=self.where, problem=problem)


def user_line() -> str:
    """`path:line` of the innermost frame of the user's own code, "" where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if _is_users(file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return file.startswith(("<stdin", "<ipython", "<string"))
    path = os.path.abspath(file)
    return not (path.startswith((_OURS + os.sep, *_STANDARD)) or any(x in path for x in _LIBRARIES))
