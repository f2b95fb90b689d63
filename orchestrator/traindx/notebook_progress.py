"""What a session is at, in a notebook: one output of the cell, written anew with each phase.

A cell has no terminal to draw over, and lines that scroll by push the result away. In a script they are lines
on standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from traindx.in_notebook import page
from traindx.notices import Hear, Notice, in_a_script
from traindx.safe_text import line

LASTING = frozenset({"said", "answered", "failed", "checked", "left"})
"""Kinds that are read again later."""

MOST_LASTING = 12
"""Lines of them that are shown, the newest."""


@dataclass
class Progress:
    """Phases with the seconds that they took, how much evidence there is, and what was said meanwhile."""

    show: Callable[[str], None]
    """Gets the whole text each time, to write it over the last one."""
    clock: Callable[[], float] = time.monotonic
    session: str = ""
    evidence: int = 0
    phases: list[tuple[str, float]] = field(default_factory=list)
    lasting: list[str] = field(default_factory=list)

    def hear(self, notice: Notice) -> None:
        """One notice."""
        if notice.kind == "opened":
            self.session = notice.text
        elif notice.kind == "phase":
            self.phases.append((line(notice.text), self.clock()))
        elif notice.kind == "evidence":
            self.evidence += 1
        elif notice.kind in LASTING:
            self.lasting = [*self.lasting, line(notice.line)][-MOST_LASTING:]
        else:
            return  # what a specialist opens next: too fast to be read
        self.show(self.text())

    def text(self) -> str:
        """As it is shown now."""
        took = [after - at for (_, at), (_, after) in zip(self.phases, self.phases[1:], strict=False)]
        rows = [f"{seconds:6.1f} s  {said}" for (said, _), seconds in zip(self.phases, took, strict=False)]
        now = [f"     ...  {said}" for said, _ in self.phases[-1:]]
        told = [f"          {self.evidence} pieces of evidence"] if self.evidence else []
        return "\n".join([f"session in {line(self.session)}", *rows, *now, *told, *(f"  {x}" for x in self.lasting)])


def listening() -> Hear:
    """Who is told where a caller named nobody: the cell of a notebook that this runs in, elsewhere standard error."""
    show = _cell()
    return in_a_script if show is None else Progress(show).hear


def _cell() -> Callable[[str], None] | None:
    """What writes the output of the running cell; None outside of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:  # IPython in a terminal has none
        return None
    from IPython.display import display

    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        content = {"text/plain": text, "text/html": page(text)}
        if handle is None:
            handle = display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return show
