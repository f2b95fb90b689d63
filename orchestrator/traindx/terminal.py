"""What `traindx diagnose` prints: the verdict, what was read, the timeline, the hypotheses, the diagnosis, the files.

The verdict comes first; after that each finding is told once, in the timeline, and cited by its id.
"""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx.diffs import diff_of
from traindx.gate import looked_at_by
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
    order = (_headline, _described, _read, _timeline, _hypotheses, _against, _verdict, _next, _files)
    parts = [list(part(view, page)) for part in order]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def render_gate(diagnosis: Diagnosis, *, colour: bool = False, width: int = 100) -> str:
    """The Gate 4 diagnosis alone, with its three questions, as plain text. Ends with a line break."""
    return "\n".join(_gate(diagnosis, _Page(width, colour), {})) + "\n"


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


def _headline(view: View, page: _Page) -> Iterator[str]:
    """The verdict: how sure, how bad, where; then the cause in one sentence, or why there is none."""
    cause = view.cause if view.status == "diagnosis_complete" else None
    if cause is None:
        yield page.heading(page.paint(view.verdict, "good") if view.status == "healthy" else view.verdict)
    else:
        about = [f"{percent(cause['confidence'])} confident", cause.get("severity"), cause.get("location")]
        yield page.heading(view.verdict, line(", ".join(str(a) for a in about if a)))
    yield from page.wrap(view.headline, "  ")
    for sentence in view.scope:
        yield from (page.paint(text, "quiet") for text in page.wrap(sentence, "  "))


def _described(view: View, page: _Page) -> Iterator[str]:
    """Each symptom that the person stated, what became of it and, where it is open, the one question."""
    if not view.described:
        return
    yield page.heading("What you described")
    for told in view.described:
        yield from page.wrap(f'"{line(told["said"], 160)}": {line(told["became"])}', "    ", "  - ")
        where = f" ({told['where']})" if told["where"] else ""
        yield from page.wrap(f"{told['statement'].rstrip('.')}{where}", "    ")
        if told["question"] and not told["explained_by"]:
            yield from page.wrap(told["question"], "    ")


def _told(view: View) -> dict[str, str]:
    """The findings that the timeline tells, by id."""
    return {m.id: m.statement for m in view.timeline[:_MOST_MOMENTS]}


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
    yield page.heading("Hypotheses", "the most likely first, an effect behind its causes")
    told = _told(view)
    for i, said in enumerate(view.supported, 1):
        likely = said["confidence"] >= _LIKELY
        yield from _claim(view, i, said, page)
        if beside := view.beside(said):
            yield from page.wrap(beside, " " * 22, " " * 12 + "note      ")
        yield from _weighed(said, told, page)
        if i == 1 or likely or view.status != "diagnosis_complete":
            yield from _checks(said, 2 if i == 1 else 1, page)


def _claim(view: View, number: int, said: Mapping[str, Any], page: _Page) -> Iterator[str]:
    """The cause in one clause, with its place; the one that the verdict names is not told again."""
    claim, statement = view.split(said["issue"])
    sure = number == 1 and view.status == "diagnosis_complete"
    place = said.get("location")
    where = f" ({place})" if statement and place and (number == 1 or said["confidence"] >= _LIKELY) else ""
    first, *rest = page.wrap(("the cause above" if sure else claim) + where, " " * 12,
                             f"  {number}. {percent(said['confidence']):>5}  ")
    yield page.paint(first, "bold") if number == 1 else first
    yield from rest


def _checks(hypothesis: Mapping[str, Any], most: int, page: _Page) -> Iterator[str]:
    for word in ("confirm", "rule_out"):
        for check in list(hypothesis.get(word, ()))[:most]:
            yield from page.wrap(check, " " * 22, f"            {word.replace('_', ' '):<10}")


def _weighed(hypothesis: Mapping[str, Any], told: Container[str], page: _Page) -> Iterator[str]:
    """What speaks for and against a hypothesis: findings that were told above by their ids alone."""
    for word in ("for", "against"):
        said = weights_of(hypothesis.get(word, ()))[:_MOST_WEIGHTS]
        cited = [f"{w.id} ({w.strength}, {w.bearing})" if w.id in told else _cited(w) for w in said]
        yield from page.wrap("; ".join(cited) or "nothing was found", " " * 22, f"            {word:<10}")


def _cited(said: Weight) -> str:
    return f"{said.text.rstrip('.')} [{said.id}, {said.strength}]" if said.id else said.text


def _against(view: View, page: _Page) -> Iterator[str]:
    yield from comparison_lines(view.comparison, page)


def _verdict(view: View, page: _Page) -> Iterator[str]:
    if view.diagnosis is not None:
        yield from _gate(view.diagnosis, page, _told(view))
    elif view.status == "diagnosis_complete" and view.cause is not None:
        yield page.heading("Diagnosis")
        for word, key in (("Root Cause", "issue"), ("Why This Happens", "mechanism"), ("Proposed Fix", "fix")):
            yield from _section(word, str(view.cause.get(key) or ""), page)


def _next(view: View, page: _Page) -> Iterator[str]:
    """What would settle it, in words; then what can be typed."""
    if view.status == "healthy":
        return
    if view.wanted:
        yield page.heading("What would settle it")
        for item in view.wanted:
            yield from page.wrap(item, "    ", "  - ")
    if view.next_checks:
        yield from [""] * bool(view.wanted)
        yield page.heading("Next commands")
        yield from (f"  {block(command)}" for command in view.next_checks)


def _gate(d: Diagnosis, page: _Page, told: Mapping[str, str]) -> Iterator[str]:
    """The six sections and the three questions. `told`: findings that stand above, by id: they are cited by it."""
    where = f", {line(d.location)}" if d.location else ""
    yield page.heading("Diagnosis (Gate 4)", "" if told else f"{percent(d.confidence)} confident, {d.severity}{where}")
    if d.degraded:
        yield from _section("Degraded: not everybody who should have looked at this did", d.degraded, page)
    yield from _section("Symptom", _by_id(d.symptom, told), page)
    yield from _section("Root Cause", _root_cause(d, told), page)
    if d.dissent:
        yield from _section("Dissent", d.dissent, page)
    if d.investigators:
        yield from page.wrap(f"looked at by: {looked_at_by(d)}", "    ", "    ")
    yield from _section("Why This Happens", d.why_this_happens, page)
    yield from _section("Proposed Fix", "" if d.options else d.proposed_fix, page)
    for fix in d.options:
        yield from _option(fix, page)
    yield from _section("What This Fix Will Change", d.will_change, page)
    yield from _section("What This Fix Will NOT Fix", d.will_not_fix, page)
    yield ""
    yield page.heading("Before anything is changed, please answer")
    for i, question in enumerate(_brief_questions(d) if told else d.questions, 1):
        yield from page.wrap(question, "     ", f"  {i}. ")


def _by_id(text: str, told: Mapping[str, str]) -> str:
    """The text with findings that were told by their ids."""
    for name, statement in told.items():
        text = text.replace(statement.rstrip("."), name)
    return text


def _root_cause(d: Diagnosis, told: Mapping[str, str]) -> str:
    """As the diagnosis says it; the claim and the ids alone where every finding that it cites was told above."""
    if not d.claim or not d.cites or not set(d.cites) <= set(told):
        return d.root_cause
    extra = d.root_cause.rpartition(f"[{d.cites[-1]}].")[2].strip()
    return f"{d.claim.rstrip('.')} [{', '.join(d.cites)}]. {extra}".rstrip()


def _brief_questions(d: Diagnosis) -> tuple[str, str, str]:
    """The three questions, where cause, options and side effects stand right above them."""
    first, choice, _ = d.questions
    doubt = first.partition("Does this match what you see?")[2]
    return (f"I believe the root cause is the one above, because of {', '.join(d.cites) or 'what was found'}. "
            f"Does this match what you see?{doubt}", choice,
            "This also changes what \"What This Fix Will Change\" says. Is that acceptable?")


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
