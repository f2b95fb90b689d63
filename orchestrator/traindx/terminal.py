"""What `traindx diagnose` and the gate print: a brief page, with `verbose` everything, and Gate 4 complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx.model import Diagnosis
from traindx.page import IN_A_PIPE, OPTION, Page
from traindx.terminal_brief import render_brief
from traindx.terminal_full import render_full
from traindx.terminal_gate import gate_lines
from traindx.view import View
from traindx_tools.on_logs.run import Run


def render_terminal(
    result: Mapping[str, Any],
    *,
    run: Run | None = None,
    diagnosis: Diagnosis | None = None,
    reason: str = "",
    notes: Sequence[str] = (),
    files: Mapping[str, str | Path] | None = None,
    colour: bool = False,
    width: int = IN_A_PIPE,
    verbose: bool = False,
    more: str = OPTION,
    typed: Callable[[str], str] = str,
) -> str:
    """The diagnosis as plain text of `width` columns; `colour` for a terminal. Ends with a line break.

    About twenty lines; with `verbose` all that is known: what was read, the timeline, every hypothesis, the diagnosis.
    `more`: how whoever reads it gets all of it. `typed`: a command as they type it.
    """
    view = View(result, run, diagnosis, reason, notes, {k: str(v) for k, v in (files or {}).items()})
    return (render_full if verbose else render_brief)(view, Page(width, colour, more, typed))


def render_gate(diagnosis: Diagnosis, *, colour: bool = False, width: int = IN_A_PIPE) -> str:
    """The Gate 4 diagnosis alone, with its three questions, as plain text. Ends with a line break."""
    return "\n".join(gate_lines(diagnosis, Page(width, colour))) + "\n"
