"""What a session tells while it works: one notice for each thing that happens.

In a pipe a notice is a line; at a terminal the live view puts them together.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from traindx.phases import Phase
from traindx.safe_text import line

Kind = Literal["opened", "phase", "said", "asked", "working", "answered", "failed", "checked", "evidence", "left"]


PHASE_WORDS: dict[Phase, str] = {
    "characterize": "writing the symptom down", "hypothesize": "ranking hypotheses", "gather": "gathering evidence",
    "diagnose": "diagnosing", "gate": "a diagnosis is ready for your decision", "fix": "applying the approved change",
    "verify": "verifying the fix", "strike": "taking the failed fix back", "retrospective": "writing down what helped",
    "done": "done", "needs_data": "more data is needed", "healthy": "nothing is wrong", "halted": "halted",
}


@dataclass(frozen=True)
class Notice:
    """`who` is a specialist, "" for the session itself; "opened" has the session's folder as its text, "left"
    what stands and the way back where it was interrupted.

    `tokens` and `dollars` are those of this notice alone.
    """

    kind: Kind
    who: str = ""
    text: str = ""
    tokens: int = 0
    dollars: float = 0.0

    @property
    def line(self) -> str:
        """As one line of a pipe."""
        return f"{self.who}: {self.text}" if self.who else self.text


Hear = Callable[[Notice], None]
Say = Callable[[str], None]
"""Where a sentence about what runs goes."""

IN_A_PIPE = frozenset({"phase", "said", "asked", "answered", "failed", "checked"})
"""Kinds that are worth a line; the others would fill a log with every file that a specialist opens."""


def working(who: str, tool: str, allowed: bool) -> Notice:
    """A tool that is used, under its own name, or that was refused."""
    name = tool.rsplit("__", 1)[-1]
    return Notice("working", who, name if allowed else f"{name} refused")


def nobody(notice: Notice) -> None:
    """Nobody listens."""


def unsaid(text: str) -> None:
    """A sentence that nobody hears."""


def begun(what: str) -> str:
    """What runs from now on, with the hour: the log of a job has no clock of its own."""
    return f"{what}, since {time.strftime('%H:%M:%S')}"


def in_a_script(notice: Notice) -> None:
    """Phases and what is said meanwhile, a line each on standard error: a job's log shows what its minutes go into."""
    if notice.kind in ("phase", "said"):
        print(f"traindx: {line(notice.line)}", file=sys.stderr, flush=True)


def as_lines(say: Callable[[str], None]) -> Hear:
    """A listener that says each notice as a line."""

    def hear(notice: Notice) -> None:
        if notice.kind in IN_A_PIPE:
            say(notice.line)

    return hear
