"""Checked claims as evidence of the session, under ids of their own, and the way back from one to the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from traindx.investigators.claude_code.checking import Proven
from traindx.model import Evidence, quoted

SOURCE = "read by "
"""How the source of such evidence begins; the specialist's name follows."""
RUN = "run by "

_BEARING: dict[str, Literal["cause", "sign", "companion"]] = {
    "line": "sign", "source": "companion", "run": "cause", "measured": "sign"}
"""A claim about evidence that the session has already is no new evidence."""


def of_claims(proven: Iterable[Proven], known: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """New evidence for the claims that are none yet; ids "S1", "S2", ... that are free."""
    taken = {e.id for e in known}
    there = {(e.statement, e.place) for e in known}
    out: list[Evidence] = []
    for p in proven:
        made = _of_claim(p, "S0") if p.kind in _BEARING else None
        if made is None or (made.statement, made.place) in there:
            continue
        number = next(n for n in range(1, len(taken) + 2) if f"S{n}" not in taken)
        out.append(made.model_copy(update={"id": f"S{number}"}))
        taken.add(f"S{number}")
        there.add((made.statement, made.place))
    return tuple(out)


def _of_claim(p: Proven, name: str) -> Evidence:
    against = "" if p.supports else "Speaks against it: "
    run = p.kind == "run"
    return Evidence(id=name, statement=f"{against}{p.claim}", value=p.value or p.claim, place=p.place,
                    strength="ran" if run else "derived", bearing=_BEARING[p.kind],
                    source=f"{RUN if run else SOURCE}{p.who}" + (f", {p.source}" if run else ""))


def of(p: Proven, known: Sequence[Evidence]) -> Evidence | None:
    """The session's evidence that holds this claim, or None."""
    if p.kind == "evidence":
        return next((e for e in known if e.id == p.source), None)
    made = _of_claim(p, "S0")
    return next((e for e in known if (e.statement, e.place) == (made.statement, quoted(made.place))
                 and e.source.startswith((SOURCE, RUN))), None)
