"""What a comment at the gate did: whether the diagnosis that is presented now is another one, and what carries it.

Read from the journal, so that each face and each later process says the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from traindx import events
from traindx.model import Diagnosis
from traindx.safe_text import line
from traindx.view import percent

MOST_QUOTED = 200
"""Characters of a comment that are repeated."""


def revised(told: Iterable[events.Event]) -> str:
    """The comment, and what became of the diagnosis since; "" where the last one was not sent back."""
    before: Diagnosis | None = None
    now: Diagnosis | None = None
    comment: str | None = None
    for event in told:
        if isinstance(event, events.Decided):
            comment = event.decision.comment if event.decision.verdict == "revise" else None
            before, now = now, None
        elif isinstance(event, events.Diagnosed):
            now = event.diagnosis
    if comment is None or before is None or now is None:
        return ""
    return f"{_after(comment)} {_same(before, now) if _is_same(before, now) else _other(before, now)}"


def _after(comment: str) -> str:
    said = line(comment.strip(), MOST_QUOTED).rstrip(".")
    return f'After your comment "{said}":' if said else "You sent it back without a comment:"


def _is_same(before: Diagnosis, now: Diagnosis) -> bool:
    return (before.failure_mode, before.location) == (now.failure_mode, now.location)


def _same(before: Diagnosis, now: Diagnosis) -> str:
    """The cause stays: how sure, and what of the evidence no comment takes away."""
    sure = (f"at {percent(now.confidence)} as before" if round(before.confidence, 2) == round(now.confidence, 2)
            else f"at {percent(now.confidence)}, before {percent(before.confidence)}")
    known = {e.id for e in before.evidence}
    new = sum(e.id not in known for e in now.evidence)
    seen = f"{new} new piece{'s' if new > 1 else ''} of evidence" if new else "nothing new was seen"
    carries = next((e for e in now.evidence if (e.rule or "").startswith("X")), next(iter(now.evidence), None))
    held = f". What carries it: {line(carries.statement).rstrip('.')}" if carries is not None else ""
    return f"the same cause, {sure}; {seen}{held}."


def _other(before: Diagnosis, now: Diagnosis) -> str:
    place = f" ({now.location})" if now.location else ""
    cause, old = (line(d.claim or d.failure_mode).rstrip(".") for d in (now, before))
    return (f"another cause, at {percent(now.confidence)}: {cause}{place}. Before it was, at "
            f"{percent(before.confidence)}: {old}.")
