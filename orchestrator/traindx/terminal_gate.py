"""Gate 4 at a terminal: the sections that a person decides on, complete and in words, ids in brackets behind them.

Tables of evidence and values stand in diagnosis.md and in the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from traindx.diffs import diff_of
from traindx.gate import looked_at_by
from traindx.model import Diagnosis, Evidence, Fix
from traindx.named_places import NamedPlaces
from traindx.page import Page
from traindx.safe_text import block, line
from traindx.view import percent

_ANSWERS = re.compile(r"\s+(?=(?:Seen|Looked up and seen|Looked up and not seen|Not understood): )")
"""Where what was looked up begins behind what the person said."""


def gate_lines(d: Diagnosis, page: Page) -> Iterator[str]:
    """The six sections and the three questions."""
    where, named = f", {line(d.location)}" if d.location else "", _names(d)
    yield page.heading("Diagnosis (Gate 4)", f"{percent(d.confidence)} confident, {d.severity}{where}")
    if d.degraded:
        yield from section("Degraded: not everybody who should have looked at this did", d.degraded, page)
    yield from section("Symptom", _ANSWERS.sub("\n", named.told(d.symptom)), page)
    yield from _root_cause(d, named, page)
    if d.dissent:
        yield from section("Dissent", d.dissent, page)
    if d.investigators:
        yield from page.wrap(f"looked at by: {looked_at_by(d)}", "    ", "    ")
    yield from section("Why This Happens", d.why_this_happens, page)
    yield from section("Proposed Fix", "" if d.options else d.proposed_fix, page)
    for fix in d.options:
        yield from _option(fix, d.location, page)
    yield from section("What This Fix Will Change", d.will_change, page)
    yield from section("What This Fix Will NOT Fix", d.will_not_fix, page)
    yield ""
    yield page.heading("Before anything is changed, please answer")
    for i, question in enumerate(d.questions_below, 1):
        yield from page.wrap(question, "     ", f"  {i}. ")


def _names(d: Diagnosis) -> NamedPlaces:
    """The files that the diagnosis is about."""
    cited = (e.place.partition(",")[0].rpartition(":")[0] for e in d.evidence)
    return NamedPlaces.of((*(path for fix in d.options for path, _, _ in fix.places), *cited))


def _root_cause(d: Diagnosis, named: NamedPlaces, page: Page) -> Iterator[str]:
    """What was seen of the cause in this run, what that is called, and each further piece of evidence on its own line.

    A cause that somebody put into their own words stays as they said it.
    """
    cited = [e for e in d.evidence if e.id in d.cites]
    own = d.root_cause.startswith(d.claim) and all(e.statement.rstrip(".") in d.root_cause for e in cited)
    if not d.claim or not cited or not own:
        yield from section("Root Cause", named.told(d.root_cause), page)
        return
    first, *more = cited
    claim = f"{d.claim.rstrip('.')}."
    direct = first.bearing == "cause"
    yield from section("Root Cause", f"{_in_words(first, named)}\nThat is: {claim}" if direct else claim, page)
    for seen in more if direct else cited:
        above = seen.statement.rstrip(".") in d.symptom
        yield from page.wrap(f"what is seen above, under Symptom [{seen.id}]" if above else _in_words(seen, named),
                             "      ", "    - ")
    extra = d.root_cause.rpartition(f"[{d.cites[-1]}].")[2].strip()
    if extra:
        yield from page.wrap(named.told(extra), "    ")


def _in_words(seen: Evidence, named: NamedPlaces) -> str:
    """A piece of evidence with its place, where it does not name it, and its id."""
    statement, place = named.told(seen.statement).rstrip("."), seen.place.partition(",")[0]
    where = f" ({place})" if place and place not in statement else ""
    return f"{statement}{where} [{seen.id}]"


def _option(fix: Fix, cause: str | None, page: Page) -> Iterator[str]:
    kind = "targeted" if fix.option == "A" else "broader"
    where = f", at {line(fix.where(cause))}" if fix.edits else ""
    yield from page.wrap(f"{fix.summary.rstrip('.')}{where}", "       ", f"    {fix.option}: {kind}: ")
    yield from (_diff_line(text, page) for text in diff_of(fix).splitlines())
    for step in fix.instructions:
        yield from page.wrap(f"{step.where}: {step.text}", "         ", "       - ")
    if fix.change:
        yield from page.wrap(fix.change, "         ", "       - ")
    for word, said in (("should move", fix.metric), ("verify", fix.verify), ("if not", fix.otherwise)):
        if said:
            yield from page.wrap(f"{word}: {said}", "         ", "       - ")


def section(title: str, said: str | Iterable[str], page: Page) -> Iterator[str]:
    yield ""
    yield "  " + page.paint(title, "bold")
    if isinstance(said, str):
        for paragraph in block(said).splitlines():
            yield from page.wrap(paragraph, "    ")
    else:
        for item in said:
            yield from page.wrap(item, "      ", "    - ")


def _diff_line(text: str, page: Page) -> str:
    look = {"+": "added", "-": "removed"}.get(text[:1], "quiet")
    return "       " + page.paint(text, look)


