"""The adversary pass: before a person sees a diagnosis, somebody who did not make it runs what would disprove it.

What was found counts where its citation stands the check: it becomes a claim against the cause, and is weighed with all
others. Where no check of the adversary stands, found or not found, nobody has challenged the cause. Doubts that nothing
shows are told to the person and move nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from traindx.gate import empty
from traindx.investigators.claude_code.answers import Disproof, Doubt, Item, Rival, read
from traindx.investigators.claude_code.asking import Reply
from traindx.investigators.claude_code.checking import Checker, Proven
from traindx.investigators.claude_code.failures import Failure
from traindx.safe_text import line

WHO = "adversary"
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
    held: tuple[Proven, ...] = ()
    """Checks that were made, stand, and found nothing against it."""
    unproven: tuple[str, ...] = ()
    """Observations that were said to be found and did not stand the check."""
    failure: Failure | None = None

    @property
    def made(self) -> bool:
        """True where something was really checked."""
        return bool(self.against or self.held)

    @property
    def contested(self) -> bool:
        """True where something that stands speaks against the cause or for another one."""
        return bool(self.against or (self.relation == "contradicts" and self.supported))

    @property
    def claims(self) -> tuple[Proven, ...]:
        """What is weighed with the claims of others."""
        return (*self.against, *self.supported)

    def objections(self) -> str:
        """What stands, in lines, for who made the diagnosis."""
        lines = [f"against it: {p.claim} ({p.place}: {p.value})" for p in self.against]
        lines += [f"for another cause ({p.failure_mode or 'unnamed'}): {p.claim} ({p.place}: {p.value})"
                  for p in self.supported]
        return "\n".join([*lines, *([f"it says: {self.why}"] if self.why else [])])

    def to_json(self) -> dict[str, Any]:
        """For a person to read."""
        return {"relation": self.relation, "why": self.why, "rivals": [r.model_dump() for r in self.rivals],
                "rivals_with_evidence": [f"{p.claim} ({p.place}: {p.value})" for p in self.supported],
                "disproofs": [d.model_dump() for d in self.disproofs],
                "found": [f"{p.claim} ({p.place}: {p.value})" for p in self.against],
                "checked_and_not_found": [f"{p.claim} ({p.place}: {p.value})" for p in self.held],
                "dropped": list(self.unproven), "failure": str(self.failure) if self.failure else None}


def challenge(reply: Reply, checker: Checker, mode: str) -> Challenge:
    """The reply about a cause of this failure mode, with what it claims to have checked and found checked here."""
    if reply.answer is None:
        return Challenge(failure=reply.failure)
    doubt = read(Doubt, reply.answer)
    if isinstance(doubt, str):
        return Challenge(failure=Failure("no-answer", doubt))
    against: list[Proven] = []
    held: list[Proven] = []
    unproven = []
    for disproof in doubt.disproofs:
        if not (disproof.found or disproof.looked_for):
            continue
        found = _checked(disproof.observation, disproof.evidence, checker)
        if isinstance(found, Proven):
            (against if disproof.found else held).append(
                replace(found, failure_mode=mode, supports=not disproof.found))
        elif disproof.found:
            unproven.append(f"{disproof.observation}: {found}")
    rivals = [(r, _checked(r.claim, r.evidence, checker)) for r in doubt.rivals if r.evidence is not None]
    supported = tuple(replace(p, claim=r.claim, supports=True, failure_mode=r.failure_mode)
                      for r, p in rivals if isinstance(p, Proven))
    return Challenge(doubt.relation, doubt.why, doubt.rivals, supported, doubt.disproofs, tuple(against), tuple(held),
                     tuple(unproven))


def _checked(observation: str, item: Item | None, checker: Checker) -> Proven | str:
    if item is None:
        return "it cites nothing"
    return checker.item(WHO, item if item.claim.strip() else item.model_copy(update={"claim": observation}))


def looked_for(result: Challenge) -> str:
    """What would disprove the cause and was looked for, in words; who did not look, and why."""
    if result.failure is not None:
        return f"Nobody tried to disprove this ({result.failure.state}: {line(result.failure.detail, 200)})."
    said = [f"{line(d.observation, 300).rstrip('.')} ({_how(d)})" for d in result.disproofs if not empty(d.observation)]
    told = f"It would be disproved by: {'; '.join(said[:DISPROOFS_SHOWN])}." if said else ""
    return told if result.made else f"{told} No check of the adversary stands.".strip()


def _how(disproof: Disproof) -> str:
    if disproof.found:
        return "said to be seen"
    return "looked for, not seen" if disproof.looked_for else "not looked for"


def dissent(result: Challenge) -> tuple[str, ...]:
    """What the adversary holds against the cause, for the gate."""
    held = _HELD.get(result.relation)
    said = [f"An adversary holds that the evidence {held} this: {line(result.why, 400).rstrip('.')}."] if held else []
    shows = {r.claim: r.would_show for r in result.rivals}
    rivals = [f"{line(p.claim, 300).rstrip('.')}: another cause with the same signs ({p.place}: {line(p.value, 200)})"
              + (f"; it would show {line(shows[p.claim], 300).rstrip('.')}" if shows.get(p.claim) else "") + "."
              for p in result.supported if not empty(p.claim)]
    return (*said, *rivals[:RIVALS_SHOWN])
