"""The protocol as a state machine: one pure function for each transition, a table of which event is legal where.

    characterize -> hypothesize -> gather -> diagnose -> gate -> fix -> verify -> retrospective -> done
                         |                   ^    |       |      |        |  (waits where nothing was shown)
                         +---- quick path ---+    |       |      |        +-> strike -> gather | halted
                                                  |       |      +-> gather (the approved text is no longer there)
                                                  |       +-> gather (revise) | halted (reject)
                                                  |       ^ gate (undone, from fix or verify)
                                                  +-> gather (unfit, sent back) | needs_data | healthy

Nothing here reads a clock, a file or a random number: the same events give the same session, which is what makes the
journal the truth. What is illegal raises; that includes an approval of another diagnosis and a second fix before the
failed one was reverted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from traindx import events as ev
from traindx.handed_over import missing_in_words
from traindx.model import (
    Approach,
    Artifacts,
    Attempt,
    Decision,
    Diagnosis,
    Evidence,
    Healthy,
    Hypothesis,
    Model,
    NeedsData,
    Symptom,
)
from traindx.phases import ENDS as ENDS
from traindx.phases import PHASES as PHASES
from traindx.phases import READ_ONLY as READ_ONLY
from traindx.phases import Phase as Phase
from traindx.strike_levels import STRIKES_OUT, level
from traindx_tools.errors import TraindxError

SENT_BACK_AT_MOST = 3
"""So many unfit diagnoses in a row, then the session asks for more data instead of going round."""

UNJUDGED: frozenset[Phase] = frozenset({"fix", "verify"})
"""Phases in which a change may stand in the files that nobody judged yet, also where the session was halted there."""

ACCEPTED = "changed meanwhile, and accepted as it is: "
"""Begins what is noted of files that a halt named and a person accepted."""

OBVIOUS = 0.9
"""Confidence of the first hypothesis that the quick path asks for: direct evidence begins above 0.90."""


class IllegalTransition(TraindxError):
    """An event came that the session's phase, or what was approved, does not allow."""


class Session(Model):
    """The state of a session: what its events add up to."""

    id: str
    phase: Phase = "characterize"
    symptom: Symptom
    artifacts: Artifacts = Artifacts()
    hypotheses: tuple[Hypothesis, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    quick: bool = False
    diagnosis: Diagnosis | None = None
    decision: Decision | None = None
    attempts: tuple[Attempt, ...] = ()
    strike_level: int = 0
    struck_out: tuple[Approach, ...] = ()
    rejected: tuple[Approach, ...] = ()
    """What a person said is not the cause."""
    sent_back: int = 0
    feedback: tuple[str, ...] = ()
    needs: NeedsData | None = None
    healthy: Healthy | None = None
    halt: ev.Halted | None = None
    halted_in: Phase | None = None
    interrupted: str | None = None

    stale: tuple[str, ...] = ()
    """Why the last approval covers nothing any more; () from the next decision on."""

    @property
    def stands_in(self) -> Phase:
        """The phase; of a halted session the one that it was halted in."""
        return self.halted_in if self.phase == "halted" and self.halted_in is not None else self.phase

    @property
    def approved(self) -> bool:
        """True while an approval covers exactly the diagnosis that stands."""
        return (self.diagnosis is not None and self.decision is not None and self.decision.verdict == "approve"
                and self.decision.diagnosis_digest == self.diagnosis.digest())

    def but(self, **changes: Any) -> Session:
        """A copy with some fields changed, checked like a new one."""
        return Session.model_validate({**dict(self), **changes})


E = TypeVar("E", bound=Model)


def _add(known: tuple[Evidence, ...], new: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Evidence is append-only: an id, once given, keeps its content."""
    by_id = {e.id: e for e in known}
    for e in new:
        if by_id.setdefault(e.id, e) != e:
            raise IllegalTransition(f"evidence {e.id} exists with other content: new evidence needs a new id")
    return tuple(by_id.values())


def obvious(hypotheses: tuple[Hypothesis, ...], evidence: tuple[Evidence, ...]) -> bool:
    """True where the quick path is open: one place, direct evidence, and no second candidate near the first."""
    if not hypotheses or hypotheses[0].location is None:
        return False
    rivals = [h for h in hypotheses[1:] if h.status != "ruled_out" and h.confidence >= OBVIOUS]
    seen = any(e.bearing == "cause" and e.strength != "guessed" for e in evidence)
    return hypotheses[0].confidence >= OBVIOUS and not rivals and seen


def _characterized(s: Session, e: ev.Characterized) -> Session:
    return s.but(phase="hypothesize", symptom=e.symptom, evidence=_add(s.evidence, e.evidence))


def _hypothesized(s: Session, e: ev.Hypothesized) -> Session:
    evidence = _add(s.evidence, e.evidence)
    quick = e.quick and s.strike_level == 0 and obvious(e.hypotheses, evidence)
    return s.but(phase="diagnose" if quick else "gather", hypotheses=e.hypotheses, evidence=evidence, quick=quick)


def _gathered(s: Session, e: ev.GatheredEvidence) -> Session:
    return s.but(phase="diagnose", evidence=_add(s.evidence, e.evidence), hypotheses=e.hypotheses)


def _diagnosed(s: Session, e: ev.Diagnosed) -> Session:
    if e.diagnosis.approach in s.struck_out:
        raise IllegalTransition(f"{e.diagnosis.approach} has {STRIKES_OUT} strikes: a fix of it is refused")
    return s.but(phase="gate", diagnosis=e.diagnosis, decision=None, sent_back=0)


def _sent_back(s: Session, e: ev.SentBack) -> Session:
    count = s.sent_back + 1
    nothing_new = s.sent_back > 0 and set(e.reasons) <= set(s.feedback)
    back = s.but(phase="gather", quick=False, sent_back=count, diagnosis=None, decision=None,
                 feedback=tuple(dict.fromkeys((*s.feedback, *e.reasons))))
    if count < SENT_BACK_AT_MOST and not nothing_new:
        return back
    needs = NeedsData(reason="No diagnosis is complete enough to be presented: " + "; ".join(e.reasons),
                      artifacts=missing_in_words(s.artifacts.missing) if s.artifacts.everything else ())
    return back.but(phase="needs_data", needs=needs)


def _quick_path_ended(s: Session, e: ev.QuickPathEnded) -> Session:
    return s.but(phase="gather", quick=False, feedback=(*s.feedback, e.reason))


def _data_needed(s: Session, e: ev.DataNeeded) -> Session:
    return s.but(phase="needs_data", needs=e.needs, diagnosis=None, decision=None)


def _data_given(s: Session, e: ev.DataGiven) -> Session:
    feedback = (*s.feedback, f"with the data: {e.comment}") if e.comment else s.feedback
    return s.but(phase="hypothesize", artifacts=e.artifacts, feedback=feedback, needs=None, sent_back=0)


def _found_healthy(s: Session, e: ev.FoundHealthy) -> Session:
    return s.but(phase="healthy", healthy=e.healthy, diagnosis=None, decision=None)


def _decided(s: Session, e: ev.Decided) -> Session:
    assert s.diagnosis is not None, "the gate is only reached with a diagnosis"
    d = e.decision
    if d.diagnosis_digest != s.diagnosis.digest():
        raise IllegalTransition("the decision names another diagnosis than the one that waits: look at it again")
    if d.verdict == "approve":
        if d.option is None or s.diagnosis.option(d.option) is None:
            raise IllegalTransition(f"the diagnosis offers no option {d.option}")
        return s.but(phase="fix", decision=d, stale=())
    comment = d.comment or f"{d.by} gave no comment"
    if d.verdict == "revise":
        return s.but(phase="gather", quick=False, decision=d, diagnosis=None, stale=(),
                     feedback=(*s.feedback, f"at the gate: {comment}"))
    rejected = tuple(dict.fromkeys((*s.rejected, s.diagnosis.approach)))
    return _halted(s.but(decision=d, rejected=rejected, stale=(), feedback=(*s.feedback, f"rejected: {comment}")),
                   ev.Halted(halt="rejected", reason=f"the diagnosis was rejected: {comment}"))


def _approval_stale(s: Session, e: ev.ApprovalStale) -> Session:
    return s.but(phase="gather", quick=False, diagnosis=None, decision=None, feedback=(*s.feedback, *e.reasons),
                 stale=e.reasons)


def _applied(s: Session, e: ev.Applied) -> Session:
    a = e.attempt
    if not s.approved or s.decision is None:
        raise IllegalTransition("no approval covers the diagnosis that stands: nothing may be applied")
    if (a.diagnosis_digest, a.option) != (s.decision.diagnosis_digest, s.decision.option):
        raise IllegalTransition("the change belongs to another diagnosis or option than the approved one")
    if a.number != len(s.attempts) + 1 or any(not t.reverted for t in s.attempts):
        raise IllegalTransition("one fix at a time: the failed one is reverted first")
    return s.but(phase="verify", attempts=(*s.attempts, a))


def _verified(s: Session, e: ev.Verified) -> Session:
    last = s.attempts[-1].model_copy(update={"verification": e.verification})
    if not e.verification.decided:  # a person says what it means, or gives another command: no strike, no success
        return s.but(phase="verify", attempts=(*s.attempts[:-1], last))
    phase = "retrospective" if e.verification.passed else "strike"
    return s.but(phase=phase, attempts=(*s.attempts[:-1], last))


def _reverted(s: Session, e: ev.Reverted) -> Session:
    if s.attempts[-1].reverted:
        raise IllegalTransition("the last fix was reverted already")
    last = s.attempts[-1].model_copy(update={"reverted": True})
    return s.but(attempts=(*s.attempts[:-1], last))


def _undone(s: Session, e: ev.Undone) -> Session:
    if s.stands_in not in UNJUDGED:
        raise IllegalTransition(f"no fix stands that nobody judged: the session was halted in {s.stands_in}")
    back = s.but(phase="gate", decision=None, halt=None, halted_in=None)
    if not s.attempts or s.attempts[-1].reverted:  # the change was not recorded as an attempt yet
        return back
    last = s.attempts[-1].model_copy(update={"reverted": True, "undone": True})
    return back.but(attempts=(*s.attempts[:-1], last))


def _struck(s: Session, e: ev.Struck) -> Session:
    last = s.attempts[-1]
    if not last.reverted:
        raise IllegalTransition("a failed fix is reverted before its strike is settled")
    showed = "; ".join(last.verification.reasons) if last.verification is not None else ""
    tried = f"{last.approach}: {last.summary.rstrip('.')}"
    told = f"{level(e.level).title}. {tried} failed: {showed}. {level(e.level).rule}"
    after = s.but(phase="gather", quick=False, strike_level=e.level, diagnosis=None, decision=None,
                  feedback=(*s.feedback, told))
    if e.level < STRIKES_OUT:
        return after
    out = after.but(struck_out=tuple(dict.fromkeys((*s.struck_out, last.approach))))
    return _halted(out, ev.Halted(halt="three-strikes", reason=f"{e.level} fixes of {last.approach} failed"))


def _directed(s: Session, e: ev.Directed) -> Session:
    _only_halted_by(s, "three-strikes")
    note = f"after three strikes {e.direction.by} chose: {e.direction.choice}. {e.direction.comment}".strip()
    if e.direction.choice == "stop":
        return s.but(phase="done", feedback=(*s.feedback, note))
    return s.but(phase="hypothesize", halt=None, halted_in=None, strike_level=0, feedback=(*s.feedback, note))


def _recorded(s: Session, e: ev.Recorded) -> Session:
    return s.but(phase="done")


def _halted(s: Session, e: ev.Halted) -> Session:
    return s.but(phase="halted", halt=e, halted_in=s.phase)


def _interrupted(s: Session, e: ev.Interrupted) -> Session:
    return s.but(interrupted=e.reason)


def _resumed(s: Session, e: ev.Resumed) -> Session:
    awake = s.but(interrupted=None, sent_back=0)
    if s.phase != "halted" or s.halt is None:
        return awake
    if s.halt.halt == "three-strikes":
        raise IllegalTransition("three strikes: decide first whether to try a fundamentally different approach")
    unaccepted = set(s.halt.files) - set(e.accepted) - set(e.put_back) if s.halt.halt == "workspace-changed" else set()
    if unaccepted:
        raise IllegalTransition(f"changed while nothing was allowed to change: {', '.join(sorted(unaccepted))}. "
                                "Put it back, or accept the change as yours.")
    rejected = s.halt.halt == "rejected"
    phase = "hypothesize" if rejected else s.halted_in
    changes: dict[str, Any] = {"diagnosis": None, "decision": None} if rejected else {}
    if e.accepted and s.halt.halt == "workspace-changed":
        changes["feedback"] = (*s.feedback, f"{ACCEPTED}{', '.join(e.accepted)}")
        if s.halted_in == "diagnose":  # what was gathered is of the files as they were
            phase, changes["quick"] = "gather", False
    return awake.but(phase=phase, halt=None, halted_in=None, **changes)


def _only_halted_by(s: Session, kind: ev.HaltKind) -> None:
    if s.halt is None or s.halt.halt != kind:
        raise IllegalTransition(f"this decision answers a halt by {kind}, and the session is not in one")


_ACTIVE: frozenset[Phase] = frozenset(PHASES) - ENDS - {"halted", "needs_data"}
_OPEN: frozenset[Phase] = frozenset(PHASES) - ENDS

LEGAL: dict[type[Model], tuple[frozenset[Phase], Callable[[Session, Any], Session]]] = {
    ev.Characterized: (frozenset({"characterize"}), _characterized),
    ev.Hypothesized: (frozenset({"hypothesize"}), _hypothesized),
    ev.GatheredEvidence: (frozenset({"gather"}), _gathered),
    ev.Diagnosed: (frozenset({"diagnose"}), _diagnosed),
    ev.SentBack: (frozenset({"diagnose"}), _sent_back),
    ev.QuickPathEnded: (frozenset({"diagnose"}), _quick_path_ended),
    ev.DataNeeded: (frozenset({"diagnose"}), _data_needed),
    ev.DataGiven: (frozenset({"needs_data"}), _data_given),
    ev.FoundHealthy: (frozenset({"diagnose"}), _found_healthy),
    ev.Decided: (frozenset({"gate"}), _decided),
    ev.ApprovalStale: (frozenset({"fix"}), _approval_stale),
    ev.Applied: (frozenset({"fix"}), _applied),
    ev.Verified: (frozenset({"verify"}), _verified),
    ev.Reverted: (frozenset({"strike"}), _reverted),
    ev.Undone: (UNJUDGED | {"halted"}, _undone),
    ev.Struck: (frozenset({"strike"}), _struck),
    ev.Directed: (frozenset({"halted"}), _directed),
    ev.Recorded: (frozenset({"retrospective"}), _recorded),
    ev.Halted: (_ACTIVE, _halted),
    ev.Interrupted: (_OPEN, _interrupted),
    ev.Resumed: (_OPEN, _resumed),
}
"""For each kind of event: the phases where it may come, and the transition that it makes."""


def advance(session: Session, event: ev.Event) -> Session:
    """The session after the event. Raises IllegalTransition where the event may not come."""
    phases, transition = LEGAL[type(event)]
    if session.phase not in phases:
        where = ", ".join(sorted(phases))
        raise IllegalTransition(f"{event.kind} cannot come in phase {session.phase}, only in {where}")
    after = transition(session, event)
    return after if isinstance(event, ev.Interrupted) or after.interrupted is None else after.but(interrupted=None)
