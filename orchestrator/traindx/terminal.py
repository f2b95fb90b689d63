"""What `traindx diagnose` prints: what was read, the timeline, the hypotheses, the diagnosis, where the files are."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx.diffs import diff_of
from traindx.model import Diagnosis, Fix
from traindx.safe_text import block, line
from traindx.terminal_against import comparison_lines
from traindx.view import Moment, View, Weight, percent, weights_of
from traindx_tools.on_logs.run import Run

_COLOURS = {"bold": "1", "quiet": "2", "critical": "31;1", "high": "33;1", "medium": "35", "low": "2", "info": "2",
            "good": "32;1", "added": "32", "removed": "31"}
_MOST_READ, _MOST_MOMENTS, _MOST_WEIGHTS = 12, 10, 3
_LIKELY = 0.05
"""Confidence from which a lesser hypothesis is shown with a check that settles it, beside a diagnosis that is sure."""


def render_terminal(
    result: Mapping[str, Any],
    *,
    run: Run | None = None,
    diagnosis: Diagnosis | None = None,
    reason: str = "",
    notes: Sequence[str] = (),
    files: Mapping[str, str | Path] | None = None,
    colour: bool = False,
    width: int = 100,
) -> str:
    """The diagnosis as plain text of `width` columns; `colour` for a terminal. Ends with a line break."""
    view = View(result, run, diagnosis, reason, notes, {k: str(v) for k, v in (files or {}).items()})
    page = _Page(width, colour)
    parts = [list(part(view, page)) for part in (_read, _timeline, _hypotheses, _against, _verdict, _files)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def render_gate(diagnosis: Diagnosis, *, colour: bool = False, width: int = 100) -> str:
    """The Gate 4 diagnosis alone, with its three questions, as plain text. Ends with a line break."""
    return "\n".join(_gate(diagnosis, _Page(width, colour))) + "\n"


class _Page:
    """Width and colour of the terminal."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = max(width, 40), colour

    def paint(self, text: str, look: str) -> str:
        return f"\x1b[{_COLOURS[look]}m{text}\x1b[0m" if self.colour and look in _COLOURS else text

    def heading(self, text: str, aside: str = "") -> str:
        return self.paint(text, "bold") + (self.paint(f"  {aside}", "quiet") if aside else "")

    def wrap(self, text: object, indent: str, first: str | None = None) -> list[str]:
        """Text on as many lines as it needs; paths and commands are never broken."""
        said = line(text)
        return textwrap.wrap(said, self.width, initial_indent=indent if first is None else first,
                             subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [indent]


def _read(view: View, page: _Page) -> Iterator[str]:
    yield page.heading("What was read", view.amount)
    wide = min(max((len(r.path) for r in view.read), default=0), 48)
    for row in view.read[:_MOST_READ]:
        note = f" ({row.note})" if row.note else ""
        yield from page.wrap(row.what + note, " " * (wide + 4), f"  {line(row.path):<{wide}}  ")
    if len(view.read) > _MOST_READ:
        yield f"  and {len(view.read) - _MOST_READ} more"
    for remark in view.remarks:
        yield from page.wrap(remark, "    ", "  note: ")


def _timeline(view: View, page: _Page) -> Iterator[str]:
    if not view.timeline:
        return
    yield page.heading("Timeline", "earliest anomaly first")
    shown = view.timeline[:_MOST_MOMENTS]
    wide, ids = max(len(m.when) for m in shown), max(len(m.id) for m in shown)
    for moment in shown:
        yield from _moment(moment, min(wide, 28), ids, page)
    if len(view.timeline) > len(shown):
        yield f"  and {len(view.timeline) - len(shown)} more findings"


def _moment(moment: Moment, wide: int, ids: int, page: _Page) -> Iterator[str]:
    head = f"  {moment.when:<{wide}}  {moment.severity:<8}  {moment.id:<{ids}}  "
    first, *rest = page.wrap(moment.statement, " " * len(head), head)
    yield first.replace(moment.severity, page.paint(moment.severity, moment.severity), 1)
    yield from rest


def _hypotheses(view: View, page: _Page) -> Iterator[str]:
    if not view.hypotheses:
        return
    yield page.heading("Hypotheses", "the most likely first")
    best, *rivals = view.hypotheses
    first, *rest = page.wrap(best["issue"], " " * 12, f"  1. {percent(best['confidence']):>5}  ")
    yield page.paint(first, "bold")
    yield from rest
    yield from _weights("for", best.get("for", ()), page)
    yield from _weights("against", best.get("against", ()), page)
    yield from _checks(best, 2, page)
    told = {m.id for m in view.timeline[:_MOST_MOMENTS]}
    told |= {w.id for word in ("for", "against") for w in weights_of(best.get(word, ()))[:_MOST_WEIGHTS]}
    for i, rival in enumerate(rivals, 2):
        claim, statement = view.split(rival["issue"])
        likely = rival["confidence"] >= _LIKELY
        place = f" ({rival['location']})" if statement and likely and rival.get("location") else ""
        yield from page.wrap(claim + place, " " * 12, f"  {i}. {percent(rival['confidence']):>5}  ")
        yield from _rival(rival, told, page)
        if likely or view.status != "diagnosis_complete":
            yield from _checks(rival, 1, page)


def _checks(hypothesis: Mapping[str, Any], most: int, page: _Page) -> Iterator[str]:
    for word in ("confirm", "rule_out"):
        for check in list(hypothesis.get(word, ()))[:most]:
            yield from page.wrap(check, " " * 22, f"            {word.replace('_', ' '):<10}")


def _rival(hypothesis: Mapping[str, Any], told: Container[str], page: _Page) -> Iterator[str]:
    """What speaks for and against a lesser hypothesis: findings that were told above by their ids alone."""
    for word in ("for", "against"):
        said = weights_of(hypothesis.get(word, ()))[:_MOST_WEIGHTS]
        cited = [f"{w.id} ({w.strength})" if w.id in told else _cited(w) for w in said]
        yield from page.wrap("; ".join(cited) or "nothing was found", " " * 22, f"            {word:<10}")


def _weights(word: str, texts: Sequence[str], page: _Page) -> Iterator[str]:
    if not texts:
        yield f"            {word:<10}nothing was found"
    for said in weights_of(texts)[:_MOST_WEIGHTS]:
        yield from page.wrap(_cited(said), " " * 22, f"            {word:<10}")


def _cited(said: Weight) -> str:
    return f"{said.text.rstrip('.')} [{said.id}, {said.strength}]" if said.id else said.text


def _against(view: View, page: _Page) -> Iterator[str]:
    yield from comparison_lines(view.comparison, page)


def _verdict(view: View, page: _Page) -> Iterator[str]:
    if view.status == "healthy":
        yield page.heading(page.paint("Nothing wrong found", "good"))
        yield from page.wrap(view.reason or "No rule saw a fault in what was read.", "  ")
    elif view.diagnosis is not None:
        yield from _gate(view.diagnosis, page)
    elif view.status == "diagnosis_complete" and view.cause is not None:
        yield page.heading("Diagnosis", f"{100 * view.cause['confidence']:.0f} % confident")
        for word, key in (("Root Cause", "issue"), ("Why This Happens", "mechanism"), ("Proposed Fix", "fix")):
            yield from _section(word, str(view.cause.get(key) or ""), page)
    else:
        yield page.heading("Needs more data")
        yield from page.wrap(view.reason or "No cause reaches the confidence that a diagnosis asks for.", "  ")
    if view.next_checks and view.status != "healthy":
        yield ""
        yield page.heading("Next commands")
        yield from (f"  {block(command)}" for command in view.next_checks)


def _gate(d: Diagnosis, page: _Page) -> Iterator[str]:
    where = f", {line(d.location)}" if d.location else ""
    yield page.heading("Diagnosis (Gate 4)", f"{100 * d.confidence:.0f} % confident, {d.severity}{where}")
    yield from _section("Symptom", d.symptom, page)
    yield from _section("Root Cause", d.root_cause, page)
    yield from _section("Why This Happens", d.why_this_happens, page)
    yield from _section("Proposed Fix", "" if d.options else d.proposed_fix, page)
    for fix in d.options:
        yield from _option(fix, page)
    yield from _section("What This Fix Will Change", d.will_change, page)
    yield from _section("What This Fix Will NOT Fix", d.will_not_fix, page)
    yield ""
    yield page.heading("Before anything is changed, please answer")
    for i, question in enumerate(d.questions, 1):
        yield from page.wrap(question, "     ", f"  {i}. ")


def _option(fix: Fix, page: _Page) -> Iterator[str]:
    kind = "targeted" if fix.option == "A" else "broader"
    yield from page.wrap(fix.summary, "       ", f"    {fix.option}: {kind}: ")
    yield from (_diff_line(text, page) for text in diff_of(fix).splitlines())
    for step in fix.instructions:
        yield from page.wrap(f"{step.path}:{step.line}: {step.text}", "         ", "       - ")
    if fix.change:
        yield from page.wrap(fix.change, "         ", "       - ")
    for word, said in (("should move", fix.metric), ("verify", fix.verify), ("if not", fix.otherwise)):
        if said:
            yield from page.wrap(f"{word}: {said}", "         ", "       - ")


def _section(title: str, said: str | Iterable[str], page: _Page) -> Iterator[str]:
    yield ""
    yield "  " + page.paint(title, "bold")
    if isinstance(said, str):
        for paragraph in block(said).splitlines():
            yield from page.wrap(paragraph, "    ")
    else:
        for item in said:
            yield from page.wrap(item, "      ", "    - ")


def _diff_line(text: str, page: _Page) -> str:
    look = {"+": "added", "-": "removed"}.get(text[:1], "quiet")
    return "       " + page.paint(text, look)


def _files(view: View, page: _Page) -> Iterator[str]:
    if not view.files:
        return
    yield page.heading("Files")
    wide = max(len(name) for name in view.files)
    for name, path in view.files.items():
        yield f"  {line(name.replace('_', ' ')):<{wide}}  {line(path)}"
