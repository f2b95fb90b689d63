"""How failure modes compete for what was seen.

    confidence(m) = exp(s_m) / (exp(s_m) + unknown + sum of b * exp(c_n) over the rivals n of m)

`s_m` is the prior of m and the weights of its evidence. A rival n shares a symptom with m, or rests on the same
finding. It starts from its prior `b`, and its credit `c_n` counts what m does not predict: a finding that speaks for
both helps the rival at most as much as it helps m, and one that m predicts (it shows a symptom of m, or an effect that
m causes) does not help the rival at all. What the rivals' priors take is taken from the unknown, which keeps at least
a tenth. So an observation that a cause predicts never lowers that cause, and an effect is no rival of its cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from traindx_tools.catalog.catalog import FailureMode
from traindx_tools.catalog.observations import shows
from traindx_tools.catalog.precision import PRIOR
from traindx_tools.finding import Bearing, Finding, Strength
from traindx_tools.weighing import Weighed

UNKNOWN = 0.1
"""What the unknown keeps at least, of 1 before any evidence: no list of causes is complete."""

MOST = 500.0
"""Log-odds beyond which nothing is surer: exp() stays finite."""


DIGITS = 6
"""Decimal places of a confidence: far finer than it is known, far coarser than the rounding of sums."""


@dataclass(frozen=True)
class Candidate:
    """A mode with what speaks for it and against it; `through`: what speaks for effects that it causes."""

    mode: FailureMode
    pro: tuple[Weighed, ...]
    con: tuple[Weighed, ...]
    through: tuple[Weighed, ...] = ()

    @cached_property
    def score(self) -> float:
        """Log-odds after the evidence."""
        return PRIOR + sum(w.weight for w in (*self.pro, *self.con, *self.through))

    @cached_property
    def gains(self) -> Mapping[int, float]:
        """What each finding adds to it, by the finding's identity."""
        return {id(w.finding): w.weight for w in (*self.pro, *self.con, *self.through)}

    def seen_apart_from(self, other: Candidate) -> bool:
        """Whether the cause was seen in the run by something that tells nothing of the other."""
        return any(w.in_run and w.bearing is Bearing.CAUSE and id(w.finding) not in other.gains for w in self.pro)

    def predicts(self, weighed: Weighed) -> bool:
        """Whether a finding is what this mode would bring about."""
        return weighed.in_run and bool(shows(weighed.finding) & set(self.mode.symptoms))

    def accounts_for(self, finding: Finding) -> bool:
        """Whether an observation of the run speaks for this mode, or is what it would bring about."""
        return finding.strength is Strength.RAN and (
            self.gains.get(id(finding), -1.0) >= 0.0 or bool(shows(finding) & set(self.mode.symptoms)))

    def credit(self, rival: Candidate) -> float:
        """What the rival gains by evidence that this mode does not account for, in log-odds."""
        total = 0.0
        shared = None if _alike(self, rival) else {id(w.finding) for w in self.pro}
        for w in (*rival.pro, *rival.con, *rival.through):
            if w.weight > 0.0 and w.strength is Strength.GUESSED:
                continue  # a guess makes no hypothesis, so it argues none away
            if shared is not None and id(w.finding) not in shared:
                continue  # what it explains besides is no business of this mode
            mine = self.gains.get(id(w.finding))
            if mine is None and self.predicts(w):
                mine = 0.0
            total += w.weight if mine is None or w.weight < 0.0 else min(w.weight, max(mine, 0.0))
        return total


def compete(one: Candidate, other: Candidate) -> bool:
    """Whether two modes are rivals.

    An effect and its cause are none, neither are two names of one fact, and neither are two causes each of which was
    seen in the run by something of its own: a program can have two faults. One that also explains some of what the
    first rests on is a rival, whatever it looks like: one fact has one cause.
    """
    if other.mode.id in one.mode.causes or one.mode.id in other.mode.causes:
        return False
    if same_fact(one.mode, (w.finding for w in one.pro), other.mode, (w.finding for w in other.pro)):
        return False
    if one.seen_apart_from(other) and other.seen_apart_from(one):
        return False
    return _alike(one, other) or any(id(w.finding) in other.gains for w in one.pro)


def same_fact(one: FailureMode, mine: Iterable[Finding], other: FailureMode, theirs: Iterable[Finding]) -> bool:
    """Whether two modes name one fact: one is a form of the other, and a finding speaks for both."""
    related = other.id in one.form_of or one.id in other.form_of
    return related and bool({id(f) for f in mine} & {id(f) for f in theirs})


def _alike(one: Candidate, other: Candidate) -> bool:
    return bool(set(one.mode.symptoms) & set(other.mode.symptoms))


def rivals_of(one: Candidate, others: Sequence[Candidate]) -> dict[str, float]:
    """What stands beside exp(score) of a candidate: each rival's mass by id, and the unknown under ""."""
    against = [c for c in others if c is not one and compete(one, c)]
    base = math.exp(PRIOR)
    base = min(base, (1.0 - UNKNOWN) / len(against)) if against else base
    masses = {c.mode.id: math.exp(min(math.log(base) + one.credit(c), MOST)) for c in against}
    return {"": max(UNKNOWN, 1.0 - base * len(against)), **masses}


def share(score: float, rivals: Mapping[str, float]) -> float:
    """exp(score) beside its rivals, 0 to 1, to DIGITS: equals stay equal in whatever order their rivals are added."""
    own = math.exp(min(score, MOST))
    return round(own / math.fsum((own, *rivals.values())), DIGITS)
