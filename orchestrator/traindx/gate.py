"""Gate 4: what makes a diagnosis fit to be presented, and what an approval covers.

Both are judgements without I/O: they take values and return the reasons that stand against them, so that a face can
show every reason at once and a test can name each.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from traindx.covering import covers as covers
from traindx.model import Decision, Diagnosis, Evidence, Fix, ProposedEdit
from traindx.sections import SECTIONS as SECTIONS
from traindx.sections import empty as empty
from traindx.unseen import unseen_in
from traindx_tools.errors import TraindxError

CONFIDENT = 0.70
"""Below, the honest answer is "needs more data"."""

class ApprovalRefused(TraindxError):
    """A decision does not cover what it is meant for: another diagnosis, an option that is not offered."""


def problems(diagnosis: Diagnosis, gathered: Iterable[Evidence]) -> tuple[str, ...]:
    """Why the diagnosis may not be presented; empty where it is complete. `gathered`: the session's evidence."""
    return (*_sections(diagnosis), *_citations(diagnosis, {e.id: e for e in gathered}), *_options(diagnosis),
            *_confidence(diagnosis))


def _sections(d: Diagnosis) -> Iterator[str]:
    for field, heading in SECTIONS:
        value = getattr(d, field)
        entries = (value,) if isinstance(value, str) else value
        if not entries:
            yield f"section '{heading}' is empty"
        for entry in entries:
            if empty(entry):
                yield f"section '{heading}' says nothing: {entry.strip()[:60]!r}"
    for field in ("failure_mode", "component"):
        if not getattr(d, field).strip():
            yield f"the {field.replace('_', ' ')} is not named, so that a failed fix could not be counted"


def _citations(d: Diagnosis, gathered: dict[str, Evidence]) -> Iterator[str]:
    if not d.cites:
        yield "the root cause cites no evidence"
    shown = {e.id: e for e in d.evidence}
    for cited in dict.fromkeys(d.cites):
        known = gathered.get(cited)
        if known is None:
            yield f"the root cause cites {cited}, which was never gathered"
        elif shown.get(cited) != known:
            yield f"evidence {cited} is shown with other content than what was gathered"
        elif not known.value.strip() or not known.place.strip():
            lacking = " and no ".join(k for k in ("value", "place") if not getattr(known, k).strip())
            yield f"evidence {cited} has no {lacking}"
    for extra in shown.keys() - set(d.cites):
        yield f"evidence {extra} is shown but not cited"


def _options(d: Diagnosis) -> Iterator[str]:
    names = [f.option for f in d.options]
    if "A" not in names:
        yield "no targeted fix is offered (option A)"
    if len(set(names)) < len(names):
        yield "two options have the same name"
    for fix in d.options:
        yield from _option(fix)


def _option(fix: Fix) -> Iterator[str]:
    if empty(fix.summary):
        yield f"option {fix.option} has no summary"
    if not fix.places:
        yield f"option {fix.option} names no path and line"
    if any(not path.strip() for path, _, _ in fix.places):
        yield f"option {fix.option} has a change without a path"
    for path in dict.fromkeys(path for path, _, _ in fix.places):
        if hidden := unseen_in(path, keep=""):
            yield f"option {fix.option} changes {path!a}: nobody sees {', '.join(hidden)} in that path"
    for instruction in fix.instructions:
        if empty(instruction.text):
            yield f"option {fix.option} says nothing to do at {instruction.where}"
        if instruction.last_line < instruction.line:
            yield f"option {fix.option}: {instruction.where} ends before it begins"
    for field, what in (("metric", "which metric should move and how far"), ("verify", "how to verify it"),
                        ("otherwise", "what to try next if it does not work")):
        if empty(getattr(fix, field)):
            yield f"option {fix.option} does not say {what}"


def _confidence(d: Diagnosis) -> Iterator[str]:
    cited = [e for e in d.evidence if e.id in d.cites]
    cap = max((e.cap for e in cited), default=0.0)
    if d.confidence < CONFIDENT:
        yield f"confidence {d.confidence:.2f} is below {CONFIDENT:.2f}: more data is needed"
    if d.confidence > cap + 1e-9:
        best = max(cited, key=lambda e: e.cap, default=None)
        kind = f"the best evidence cited ({best.strength}, {best.bearing})" if best else "no evidence"
        yield f"confidence {d.confidence:.2f} is above {cap:.2f}, the most that {kind} carries"


def check_decision(decision: Decision, diagnosis: Diagnosis) -> None:
    """Raise ApprovalRefused unless the decision is about this very diagnosis and an option that it offers."""
    if decision.diagnosis_digest != diagnosis.digest():
        raise ApprovalRefused(
            f"this {decision.verdict} is for diagnosis {decision.diagnosis_digest[:12]}, but {diagnosis.digest()[:12]} "
            "waits now: read it again and decide on that one")
    if decision.option is not None and diagnosis.option(decision.option) is None:
        offered = ", ".join(f.option for f in diagnosis.options)
        raise ApprovalRefused(f"option {decision.option} is not offered; the diagnosis offers: {offered}")


def outside(fix: Fix, edits: Iterable[ProposedEdit]) -> tuple[str, ...]:
    """The edits that the approved option does not cover, each with what it covers in that file."""
    return tuple(_refusal(fix, e) for e in edits if not covers(fix, e.path, e.line, e.end_line))


def _refusal(fix: Fix, edit: ProposedEdit) -> str:
    covered = [f"{first}-{last}" if last >= first else f"an insertion before {first}"
               for path, first, last in fix.places if posixpath.normpath(path) == posixpath.normpath(edit.path)]
    scope = f"only lines {', '.join(covered)} of it" if covered else "nothing in that file"
    return f"{edit.path}:{edit.line}-{edit.end_line} is outside the approval, which covers {scope}"


def looked_at_by(d: Diagnosis) -> str:
    """Who worked on it, in words, and whether anybody who did not make it attacked it; "" where nobody is named."""
    who = ", ".join(d.investigators)
    return who if not who or "adversary" in d.investigators else f"{who} (nobody challenged it)"
