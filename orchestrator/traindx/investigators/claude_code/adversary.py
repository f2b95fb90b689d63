"""The adversary pass: before a person sees a diagnosis, somebody who did not make it tries to break it.

A disproof counts only where its observation was checked; it lowers the confidence by the engine's arithmetic. Doubts
that nothing shows are told to the person and move nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx.gate import CONFIDENT, empty
from traindx.investigators.claude_code import weighing
from traindx.investigators.claude_code.answers import Disproof, Doubt, Rival, read
from traindx.investigators.claude_code.asking import Reply
from traindx.investigators.claude_code.checking import Checker, Proven
from traindx.investigators.claude_code.failures import Failure
from traindx.model import Diagnosis, NeedsData
from traindx.safe_text import line

RIVALS_SHOWN = 3
DISPROOFS_SHOWN = 3
_HELD = {"goes_along": "only goes along with", "contradicts": "contradicts"}


@dataclass(frozen=True)
class Challenge:
    """What the adversary brought, after the check."""

    relation: str = ""
    why: str = ""
    rivals: tuple[Rival, ...] = ()
    """All that were named; `supported` are those that a checked observation of this run speaks for."""
    supported: tuple[Proven, ...] = ()
    disproofs: tuple[Disproof, ...] = ()
    against: tuple[Proven, ...] = ()
    """Observations that disprove it and that stand the check."""
    unproven: tuple[str, ...] = ()
    """Observations that were said to be found and did not stand the check."""
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        """For a person to read."""
        return {"relation": self.relation, "why": self.why, "rivals": [r.model_dump() for r in self.rivals],
                "rivals_with_evidence": [f"{p.claim} ({p.place}: {p.value})" for p in self.supported],
                "disproofs": [d.model_dump() for d in self.disproofs],
                "found": [f"{p.claim} ({p.place}: {p.value})" for p in self.against],
                "dropped": list(self.unproven), "failure": str(self.failure) if self.failure else None}


def challenge(reply: Reply, checker: Checker) -> Challenge:
    """The reply, with what it claims to have found checked."""
    if reply.answer is None:
        return Challenge(failure=reply.failure)
    doubt = read(Doubt, reply.answer)
    if isinstance(doubt, str):
        return Challenge(failure=Failure("no-answer", doubt))
    against, unproven = [], []
    supported = [p for r in doubt.rivals if r.evidence is not None
                 for p in [checker.item(reply.who, r.evidence.model_copy(update={"claim": r.claim}))]
                 if isinstance(p, Proven)]
    for disproof in doubt.disproofs:
        if not disproof.found:
            continue
        found = checker.item(reply.who, disproof.evidence) if disproof.evidence else "it cites nothing"
        if isinstance(found, Proven):
            against.append(found)
        else:
            unproven.append(f"{disproof.observation}: {found}")
    return Challenge(doubt.relation, doubt.why, doubt.rivals, tuple(supported), doubt.disproofs, tuple(against),
                     tuple(unproven))


def doubted(made: Diagnosis, result: Challenge) -> Diagnosis | NeedsData:
    """The diagnosis with what the adversary brought, or, where it broke, what must be seen next."""
    sure = round(weighing.lowered(made.confidence, result.against), 3)
    if sure < CONFIDENT:
        seen = "; ".join(f"{line(p.claim, 300).rstrip('.')} ({p.place}: {line(p.value, 200)})" for p in result.against)
        return NeedsData(
            reason=f"{(made.claim or made.root_cause).rstrip('.')}: this looked certain ({made.confidence:.2f}), but "
                   f"the check of what would disprove it found: {seen}. That leaves {sure:.2f}.",
            next_checks=tuple(line(r.would_show, 300) for r in result.rivals if not empty(r.would_show))[:5],
            questions=tuple(f"Could it be this instead: {line(r.claim, 300).rstrip('.')}?"
                            for r in result.rivals if not empty(r.claim))[:RIVALS_SHOWN])
    return made.model_copy(update={
        "confidence": sure,
        "root_cause": f"{made.root_cause} {_looked_for(result)}".strip(),
        "will_not_fix": (*made.will_not_fix, *_rivals(result)),
    })


def _looked_for(result: Challenge) -> str:
    if result.failure is not None:
        return f"Nobody tried to disprove this ({result.failure.state}: {line(result.failure.detail, 200)})."
    said = [f"{line(d.observation, 300).rstrip('.')} ({_how(d)})" for d in result.disproofs if not empty(d.observation)]
    told = f"It would be disproved by: {'; '.join(said[:DISPROOFS_SHOWN])}." if said else ""
    held = _HELD.get(result.relation)
    why = f"An adversary holds that the evidence {held} this: {line(result.why, 400).rstrip('.')}." if held else ""
    return " ".join(t for t in (told, why) if t)


def _how(disproof: Disproof) -> str:
    if disproof.found:
        return "said to be seen"
    return "looked for, not seen" if disproof.looked_for else "not looked for"


def _rivals(result: Challenge) -> tuple[str, ...]:
    """Rivals that something in this run speaks for; the others are kept in adversary.json alone."""
    shows = {r.claim: r.would_show for r in result.rivals}
    return tuple(f"{line(p.claim, 300).rstrip('.')}: another cause with the same signs ({p.place}: "
                 f"{line(p.value, 200)})"
                 + (f"; it would show {line(shows[p.claim], 300).rstrip('.')}" if shows.get(p.claim) else "") + "."
                 for p in result.supported if not empty(p.claim))[:RIVALS_SHOWN]
