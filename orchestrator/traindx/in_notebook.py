"""What a notebook shows of a result: the page of the terminal and the picture, both inline, nothing fetched."""

from __future__ import annotations

import base64
import html
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.abandoned import temporary
from traindx.in_a_cell import decision_calls, sentence_in_a_cell

if TYPE_CHECKING:
    from traindx.model import Attempt, Diagnosis
    from traindx_tools.examine import Examination

WIDTH = 100
"""Columns of the page."""
_PAGE = '<pre style="font-family:monospace;white-space:pre-wrap;line-height:1.35;max-width:64em">{}</pre>'
_PICTURE = '<img alt="{}" style="max-width:100%" src="data:image/png;base64,{}">'


def of_report(seen: Examination, text: str) -> str:
    """A diagnosis: what `traindx diagnose` prints, with the picture of the run where it has metrics."""
    from traindx_tools.plots import draw_pictures

    with temporary("traindx-notebook-") as folder:
        pictures = draw_pictures(seen.run, seen.findings, folder)
        return page(text) + "".join(
            picture(path, name.replace("_", " ")) for name, path in pictures.items())


def name_of(value: object) -> str:
    """The name under which the notebook's user has a value; `_`, its last output, where they gave it none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    names = getattr(shell, "user_ns", {})
    return next((n for n, v in list(names.items()) if v is value and not n.startswith("_")), "_")


def of_session(name: str, status: str, said: Sequence[str], next_step: str, diagnosis: Diagnosis | None,
               attempts: Sequence[Attempt] = ()) -> str:
    """A session: where it stands, why and what is next; what was tried, before and after; and while it waits at the
    gate the diagnosis with its questions. `name`: how the notebook's user calls its result."""
    from traindx.terminal import render_gate

    waits = diagnosis is not None and status == "awaiting_approval"
    told = [f"{status.replace('_', ' ')}: {said[0]}", *said[1:], *(line for a in attempts for line in _tried(a)),
            *_next(name, next_step, diagnosis if waits else None)]
    gate = page(render_gate(diagnosis, width=WIDTH)) if diagnosis is not None and waits else ""
    return page("\n".join(told)) + gate


def _next(name: str, next_step: str, waits: Diagnosis | None) -> Iterator[str]:
    """What a cell takes next: at the gate the calls that decide, else the step in words with its commands."""
    if waits is not None:
        yield from ("", "Next: read the diagnosis below, then one of the first three, and the last:")
        yield from (f"  {call}" for call in decision_calls(name, next((f.option for f in waits.options), "A")))
    elif next_step:
        yield from ("", f"Next: {sentence_in_a_cell(next_step)}")


def _tried(attempt: Attempt) -> Iterator[str]:
    """A fix, why it is judged as it is, and the metrics before and after."""
    kept = ", undone" if attempt.undone else ", taken back" if attempt.reverted else ""
    summary, places = attempt.summary.rstrip("."), ", ".join(attempt.where)
    yield f"fix {attempt.number}, option {attempt.option}: {summary}, {places}{kept}"
    if attempt.verification is None:
        return
    yield from (f"  {reason}" for reason in attempt.verification.reasons)
    for row in attempt.verification.table:
        yield f"  {row.name:<24} {row.before:>12} -> {row.after:<12} {row.unit} {row.change}".rstrip()


def page(text: str) -> str:
    """Text as it is, with what means something to HTML escaped."""
    return _PAGE.format(html.escape(text))


def picture(path: Path, alternative: str) -> str:
    """A PNG file, inline."""
    return _PICTURE.format(html.escape(alternative), base64.b64encode(path.read_bytes()).decode())
