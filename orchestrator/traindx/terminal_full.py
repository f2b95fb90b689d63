"""What `traindx diagnose -v` prints: everything of a diagnosis, in the order in which a person reads it.

The verdict comes first; after that each finding is told once, in the timeline, and cited by its id among the
hypotheses. The diagnosis that a person decides on says everything in words again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from traindx.in_brief import answers
from traindx.page import Page, blocks
from traindx.safe_text import block, line
from traindx.seen_at_once import LINES, LONGEST
from traindx.terminal_against import comparison_lines
from traindx.terminal_gate import gate_lines, section
from traindx.view import Moment, View, percent
from traindx.weights_told import Weight, weights_of

_MOST_READ, _MOST_MOMENTS, _MOST_WEIGHTS = 12, 10, 3
_LIKELY = 0.05
"""Confidence from which a lesser hypothesis is shown with a check that settles it, beside a diagnosis that is sure."""


def render_full(view: View, page: Page) -> str:
    """The whole page. Ends with a line break."""
    order = (_headline, _described, _read, _timeline, _along, _hypotheses, _against, _verdict, _next, _files)
    return blocks(*(part(view, page) for part in order))


def _headline(view: View, page: Page) -> Iterator[str]:
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


def _described(view: View, page: Page) -> Iterator[str]:
    """What the person said, each sentence once, with what became of it."""
    told = answers(view)
    if not told:
        return
    yield page.heading("What you described")
    for answer in told:
        yield from page.wrap(f'"{line(answer.quote, 160)}"', "    ", "  - ")
        for said in answer.told:
            yield from page.wrap(said.text + (f" ({said.place})" if said.place else ""), "      ", "    ")


def _told(view: View) -> dict[str, str]:
    """The findings that the timeline tells, by id."""
    return {m.id: m.statement for m in view.timeline[:_MOST_MOMENTS]}


def _read(view: View, page: Page) -> Iterator[str]:
    yield page.heading("What was read", view.amount)
    yield from page.wrap(view.course, "  ", "  ") if view.course else ()
    wide = min(max((len(r.path) for r in view.read), default=0), 48)
    for row in view.read[:_MOST_READ]:
        note = f" ({row.note})" if row.note else ""
        yield from page.wrap(row.what + note, " " * (wide + 4), f"  {line(row.path):<{wide}}  ")
    if len(view.read) > _MOST_READ:
        yield f"  and {len(view.read) - _MOST_READ} more"
    for remark in view.remarks:
        yield from page.wrap(remark, "    ", "  note: ")
    facts = str(view.result.get("analysis_artifacts", {}).get("program_facts", "")).splitlines()
    for fact in facts[:LINES]:
        yield from page.wrap(line(fact, LONGEST), "    ", "  fact: ")


def _timeline(view: View, page: Page) -> Iterator[str]:
    if not view.timeline:
        return
    yield page.heading("Timeline", "earliest anomaly first")
    shown = view.timeline[:_MOST_MOMENTS]
    wide, ids = max(len(m.when) for m in shown), max(len(m.id) for m in shown)
    for moment in shown:
        yield from _moment(moment, min(wide, 28), ids, page)
    if len(view.timeline) > len(shown):
        yield f"  and {len(view.timeline) - len(shown)} more findings"


def _along(view: View, page: Page) -> Iterator[str]:
    """What goes along with anomalies and is no finding by itself, and what only seemed to."""
    if not view.along:
        return
    yield page.heading("What goes along")
    for one in view.along:
        yield from page.wrap(view.named(one.remark or one.event), "    ", "  - ")
        for text in one.ruled_out:
            yield from page.wrap(f"ruled out: {text}", "      ", "    ")


def _moment(moment: Moment, wide: int, ids: int, page: Page) -> Iterator[str]:
    head = f"  {moment.when:<{wide}}  {moment.severity:<8}  {moment.id:<{ids}}  "
    first, *rest = page.wrap(moment.statement, " " * len(head), head)
    yield first.replace(moment.severity, page.paint(moment.severity, moment.severity), 1)
    yield from rest


def _hypotheses(view: View, page: Page) -> Iterator[str]:
    if not view.hypotheses:
        return
    yield page.heading("Hypotheses", view.no_order or "the most likely first, an effect behind its causes")
    told = _told(view)
    for i, said in enumerate(view.in_order, 1):
        likely = said["confidence"] >= _LIKELY
        yield from _claim(view, i, said, page)
        if beside := view.beside(said):
            yield from page.wrap(beside, " " * 22, " " * 12 + "note      ")
        if ground := view.unshown(said):
            yield from page.wrap(ground, " " * 22, " " * 12 + "note      ")
        yield from _weighed(said, told, page)
        if i == 1 or likely or view.status != "diagnosis_complete":
            yield from _checks(said, 2 if i == 1 else 1, page)


def _claim(view: View, number: int, said: Mapping[str, Any], page: Page) -> Iterator[str]:
    """The cause in one clause, with its place; the one that the verdict names is not told again."""
    claim, statement = view.split(said["issue"])
    sure = number == 1 and view.status == "diagnosis_complete"
    place = said.get("location")
    tied = any(said is t for t in view.tied)
    where = f" ({place})" if statement and place and (number == 1 or said["confidence"] >= _LIKELY) else ""
    first, *rest = page.wrap(("the cause above" if sure else claim) + where, " " * 12,
                             f"  {number}. {percent(said['confidence']):>5}  " if not tied else " " * 10 + "- ")
    yield page.paint(first, "bold") if number == 1 and not tied else first
    yield from rest


def _checks(hypothesis: Mapping[str, Any], most: int, page: Page) -> Iterator[str]:
    for word in ("confirm", "rule_out"):
        for check in list(hypothesis.get(word, ()))[:most]:
            yield from page.wrap(check, " " * 22, f"            {word.replace('_', ' '):<10}")


def _weighed(hypothesis: Mapping[str, Any], told: Container[str], page: Page) -> Iterator[str]:
    """What speaks for and against a hypothesis: findings that were told above by their ids alone."""
    for word in ("for", "against"):
        said = weights_of(hypothesis.get(word, ()))[:_MOST_WEIGHTS]
        cited = [f"{w.id} ({w.strength}, {w.bearing})" if w.id in told else _cited(w) for w in said]
        yield from page.wrap("; ".join(cited) or "nothing was found", " " * 22, f"            {word:<10}")


def _cited(said: Weight) -> str:
    return f"{said.text.rstrip('.')} [{said.id}, {said.strength}]" if said.id else said.text


def _against(view: View, page: Page) -> Iterator[str]:
    yield from comparison_lines(view.comparison, page)


def _verdict(view: View, page: Page) -> Iterator[str]:
    if view.diagnosis is not None:
        yield from gate_lines(view.diagnosis, page)
    elif view.status == "diagnosis_complete" and view.cause is not None:
        yield page.heading("Diagnosis")
        for word, key in (("Root Cause", "issue"), ("Why This Happens", "mechanism"), ("Proposed Fix", "fix")):
            yield from section(word, str(view.cause.get(key) or ""), page)


def _next(view: View, page: Page) -> Iterator[str]:
    """What would settle it, in words; then what can be typed."""
    if view.status == "healthy" and not any(" --line " in c for c in view.next_checks):
        return
    if view.wanted:
        yield page.heading("What would settle it")
        for item in view.wanted:
            yield from page.wrap(item, "    ", "  - ")
    if view.next_checks:
        yield from [""] * bool(view.wanted)
        yield page.heading("Next commands")
        yield from (f"  {block(page.typed(command))}" for command in view.next_checks)


def _files(view: View, page: Page) -> Iterator[str]:
    if not view.files:
        return
    yield page.heading("Files")
    wide = max(len(name) for name in view.files)
    for name, path in view.files.items():
        yield f"  {line(name.replace('_', ' ')):<{wide}}  {line(path)}"
