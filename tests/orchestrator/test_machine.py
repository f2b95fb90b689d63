"""The state machine: what is legal, what is not, and what holds after any sequence of events."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from scripted import EVIDENCE, diagnosis, fix, hypotheses, replace_line

from traindx import events as ev
from traindx.machine import LEGAL, PHASES, IllegalTransition, Session, advance, obvious
from traindx.model import (
    Artifacts,
    Attempt,
    Decision,
    Direction,
    Evidence,
    Healthy,
    NeedsData,
    Symptom,
    Verification,
    VerificationResult,
)
from traindx.strike_levels import STRIKES_OUT


def new() -> Session:
    return Session(id="s", symptom=Symptom(observed="the loss explodes"))


def attempt(session: Session, **changes: object) -> Attempt:
    assert session.diagnosis is not None
    values = {"number": len(session.attempts) + 1, "diagnosis_digest": session.diagnosis.digest(), "option": "A",
              "approach": session.diagnosis.approach, "summary": "x", "places": (("train.py", 4, 4),)}
    return Attempt.model_validate({**values, **changes})


def approval(session: Session, option: str = "A") -> ev.Decided:
    assert session.diagnosis is not None
    return ev.Decided(decision=Decision.model_validate(
        {"verdict": "approve", "diagnosis_digest": session.diagnosis.digest(), "option": option}))


def through(session: Session, *steps: ev.Event) -> Session:
    for event in steps:
        session = advance(session, event)
    return session


def at_gate() -> Session:
    return through(new(), ev.Characterized(symptom=Symptom(observed="x")),
                   ev.Hypothesized(hypotheses=hypotheses(), evidence=(EVIDENCE,)),
                   ev.GatheredEvidence(evidence=(), hypotheses=hypotheses()), ev.Diagnosed(diagnosis=diagnosis()))


def failing(session: Session, level: int) -> Session:
    session = advance(session, approval(session))
    session = advance(session, ev.Applied(attempt=attempt(session)))
    return through(session, ev.Verified(verification=Verification(passed=False, reasons=("nan",))), ev.Reverted(),
                   ev.Struck(level=level))


def test_the_whole_way_to_a_verified_fix():
    s = at_gate()
    s = advance(s, approval(s))
    assert s.phase == "fix"
    assert s.approved
    s = through(s, ev.Applied(attempt=attempt(s)), ev.Verified(verification=Verification(passed=True, reasons=("ok",))),
                ev.Recorded(files=()))
    assert s.phase == "done"


def test_every_event_in_every_phase_where_it_is_not_listed_raises():
    samples: list[ev.Event] = [
        ev.Characterized(symptom=Symptom(observed="x")), ev.Hypothesized(hypotheses=()),
        ev.GatheredEvidence(evidence=(), hypotheses=()), ev.Diagnosed(diagnosis=diagnosis()),
        ev.SentBack(reasons=("r",)),
        ev.QuickPathEnded(reason="r"), ev.DataNeeded(needs=NeedsData(reason="r")), ev.DataGiven(artifacts=Artifacts()),
        ev.FoundHealthy(healthy=Healthy(reason="r")), approval(at_gate()), ev.ApprovalStale(reasons=("r",)),
        ev.Applied(attempt=attempt(at_gate())), ev.Verified(verification=Verification(passed=True, reasons=("ok",))),
        ev.Reverted(), ev.Undone(), ev.Struck(level=1), ev.Directed(direction=Direction(choice="stop")),
        ev.Recorded(files=()), ev.Halted(halt="rejected", reason="r"), ev.Interrupted(reason="r"), ev.Resumed()]
    assert {type(e) for e in samples} == set(LEGAL)
    for event in samples:
        for phase in set(PHASES) - LEGAL[type(event)][0]:
            with pytest.raises(IllegalTransition, match=f"cannot come in phase {phase}"):
                advance(new().but(phase=phase), event)


def test_the_name_of_who_decided_is_kept_as_visible_text():
    decision = Decision.approve(diagnosis(), by="\x1b[31mroot\x1b[0m\x07")
    assert "\x1b" not in decision.by
    assert "\x07" not in decision.by
    assert "root" in decision.by


def test_an_approval_of_another_diagnosis_is_refused():
    s = at_gate()
    other = diagnosis(root_cause="Something else entirely at train.py:4 is 10.0 here.")
    decision = Decision(verdict="approve", diagnosis_digest=other.digest(), option="A")
    with pytest.raises(IllegalTransition, match="another diagnosis"):
        advance(s, ev.Decided(decision=decision))


def test_an_approval_of_an_option_that_is_not_offered_is_refused():
    s = at_gate()
    with pytest.raises(IllegalTransition, match="no option B"):
        advance(s, approval(s, "B"))


@pytest.mark.parametrize("changes", [{"option": "B"}, {"diagnosis_digest": "0" * 64}, {"number": 2}])
def test_a_fix_that_is_not_the_approved_one_is_refused(changes: dict[str, object]):
    s = at_gate()
    s = advance(s, approval(s))
    with pytest.raises(IllegalTransition):
        advance(s, ev.Applied(attempt=attempt(s, **changes)))


def test_a_strike_is_settled_only_after_the_revert():
    s = at_gate()
    s = advance(s, approval(s))
    s = through(s, ev.Applied(attempt=attempt(s)), ev.Verified(verification=Verification(passed=False, reasons=("x",))))
    with pytest.raises(IllegalTransition, match="reverted before"):
        advance(s, ev.Struck(level=1))


def test_three_strikes_halt_and_the_same_approach_is_refused_afterwards():
    s = at_gate()
    for level in (1, 2):
        s = failing(s, level)
        assert (s.phase, s.strike_level) == ("gather", level)
        assert s.feedback[-1].startswith(f"strike {level}: ")
        assert "failed: nan" in s.feedback[-1]
        s = through(s, ev.GatheredEvidence(evidence=(), hypotheses=()), ev.Diagnosed(diagnosis=diagnosis()))
    s = failing(s, 3)
    assert s.phase == "halted"
    with pytest.raises(IllegalTransition, match="three strikes"):
        advance(s, ev.Resumed())
    s = through(s, ev.Directed(direction=Direction(choice="different")), ev.Hypothesized(hypotheses=()),
                ev.GatheredEvidence(evidence=(), hypotheses=()))
    with pytest.raises(IllegalTransition, match="3 strikes"):
        advance(s, ev.Diagnosed(diagnosis=diagnosis()))
    assert advance(s, ev.Diagnosed(diagnosis=diagnosis(failure_mode="init.too-large"))).phase == "gate"


def test_a_halt_by_a_changed_file_needs_the_files_accepted():
    s = advance(new(), ev.Halted(halt="workspace-changed", reason="r", files=("a.py", "b.py")))
    with pytest.raises(IllegalTransition, match=r"b\.py"):
        advance(s, ev.Resumed(accepted=("a.py",)))
    assert advance(s, ev.Resumed(accepted=("a.py", "b.py"))).phase == "characterize"


def test_evidence_keeps_its_content():
    s = through(new(), ev.Characterized(symptom=Symptom(observed="x"), evidence=(EVIDENCE,)))
    changed = EVIDENCE.model_copy(update={"value": "0.1"})
    with pytest.raises(IllegalTransition, match="needs a new id"):
        advance(s, ev.Hypothesized(hypotheses=(), evidence=(changed,)))


def test_the_quick_path_needs_direct_evidence_one_place_and_no_rival():
    assert obvious(hypotheses(0.95), (EVIDENCE,))
    weak = Evidence(id="E2", statement="it often is", strength="guessed")
    assert not obvious(hypotheses(0.95), (weak,))
    assert not obvious(hypotheses(0.85), (EVIDENCE,))
    assert not obvious((hypotheses(0.95)[1].model_copy(update={"confidence": 0.95}),), (EVIDENCE,))
    rival = hypotheses(0.95)[1].model_copy(update={"confidence": 0.95})
    assert not obvious((hypotheses(0.95)[0], rival), (EVIDENCE,))


def test_the_quick_path_goes_straight_to_the_diagnosis_and_back_when_it_is_unfit():
    s = through(new(), ev.Characterized(symptom=Symptom(observed="x")),
                ev.Hypothesized(hypotheses=hypotheses(0.95), evidence=(EVIDENCE,), quick=True))
    assert (s.phase, s.quick) == ("diagnose", True)
    s = advance(s, ev.SentBack(reasons=("no path and line",)))
    assert (s.phase, s.quick) == ("gather", False)


def test_an_investigator_that_repeats_an_unfit_diagnosis_is_asked_for_data_instead_of_going_round():
    s = at_gate().but(phase="diagnose")
    s = through(s, ev.SentBack(reasons=("no path",)), ev.GatheredEvidence(evidence=(), hypotheses=()),
                ev.SentBack(reasons=("no path",)))
    assert s.phase == "needs_data"
    assert s.needs is not None
    assert "no path" in s.needs.reason


@pytest.mark.parametrize(("result", "phase"), [
    ("fixed", "retrospective"), ("failed", "strike"), ("no_effect", "strike"), ("not_executed", "verify"),
    ("passed_effect_not_shown", "verify")])
def test_each_result_leads_where_it_should(result: VerificationResult, phase: str):
    at = advance(at_gate(), approval(at_gate()))
    waiting = advance(at, ev.Applied(attempt=attempt(at)))
    seen = Verification(passed=result == "fixed", result=result, reasons=("r",))
    after = advance(waiting, ev.Verified(verification=seen))
    assert (after.phase, after.attempts[-1].verification) == (phase, seen)
    if phase == "verify":
        by_hand = Verification(passed=True, result="fixed", reasons=("user: it learns",))
        assert advance(after, ev.Verified(verification=by_hand)).phase == "retrospective"
        with pytest.raises(IllegalTransition):
            advance(after, ev.Struck(level=1))


def test_a_record_of_before_there_were_results_is_read():
    old = {"passed": True, "reasons": ["the command passed"]}
    assert Verification.model_validate(old).result == "fixed"
    assert Verification.model_validate({**old, "passed": False}).result == "failed"
    with pytest.raises(ValueError, match="passed is True"):
        Verification(passed=True, result="not_executed", reasons=())


class Walk(RuleBasedStateMachine):
    """Any sequence of events, legal or not: the invariants hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.session = new()
        self.log: list[ev.Event] = []

    def _try(self, event: ev.Event) -> None:
        before = self.session
        try:
            self.session = advance(before, event)
        except IllegalTransition:
            assert self.session is before
            return
        assert before.phase in LEGAL[type(event)][0]
        self.log.append(event)

    @rule(quick=st.booleans(), confidence=st.sampled_from([0.5, 0.95]))
    def look(self, quick: bool, confidence: float) -> None:
        self._try(ev.Characterized(symptom=Symptom(observed="x")))
        self._try(ev.Hypothesized(hypotheses=hypotheses(confidence), evidence=(EVIDENCE,), quick=quick))
        self._try(ev.GatheredEvidence(evidence=(), hypotheses=hypotheses()))

    @rule(mode=st.sampled_from(["a", "b"]))
    def diagnose(self, mode: str) -> None:
        self._try(ev.Diagnosed(diagnosis=diagnosis(fix(replace_line("learning_rate = 1")), failure_mode=mode)))

    @rule(verdict=st.sampled_from(["approve", "reject", "revise"]), option=st.sampled_from(["A", "B"]),
          right=st.booleans())
    def decide(self, verdict: str, option: str, right: bool) -> None:
        digest = self.session.diagnosis.digest() if self.session.diagnosis and right else "0" * 64
        self._try(ev.Decided(decision=Decision.model_validate(
            {"verdict": verdict, "diagnosis_digest": digest, "option": option})))

    @rule(right=st.booleans())
    def apply(self, right: bool) -> None:
        if self.session.diagnosis is not None:
            self._try(ev.Applied(attempt=attempt(self.session, option="A" if right else "B")))

    @rule(result=st.sampled_from(get_args(VerificationResult)))
    def verify(self, result: VerificationResult) -> None:
        self._try(ev.Verified(verification=Verification(passed=result == "fixed", result=result, reasons=("r",))))

    @rule(revert_first=st.booleans())
    def settle(self, revert_first: bool) -> None:
        if revert_first:
            self._try(ev.Reverted())
        failed = [a for a in self.session.attempts if a.verification and a.verification.failed]
        same = [a for a in failed if a.approach == failed[-1].approach] if failed else []
        self._try(ev.Struck(level=max(len(same), 1)))

    @rule(event=st.sampled_from([
        ev.SentBack(reasons=("r",)), ev.QuickPathEnded(reason="r"), ev.DataNeeded(needs=NeedsData(reason="r")),
        ev.DataGiven(artifacts=Artifacts()), ev.ApprovalStale(reasons=("r",)), ev.Recorded(files=()),
        ev.Halted(halt="workspace-changed", reason="r", files=("a",)), ev.Interrupted(reason="r"), ev.Resumed(),
        ev.Resumed(accepted=("a",)), ev.Directed(direction=Direction(choice="different")),
        ev.FoundHealthy(healthy=Healthy(reason="r"))]))
    def other(self, event: ev.Event) -> None:
        self._try(event)

    @invariant()
    def a_fix_or_a_change_in_the_workspace_has_an_approval_that_covers_it(self) -> None:
        if self.session.phase in ("fix", "verify", "strike", "retrospective"):
            assert self.session.approved

    @invariant()
    def what_is_not_decided_is_neither_a_strike_nor_a_success(self) -> None:
        last = self.session.attempts[-1].verification if self.session.attempts else None
        if self.session.phase in ("strike", "retrospective"):
            assert last is not None
            assert last.decided

    @invariant()
    def one_fix_at_a_time(self) -> None:
        open_ones = [a for a in self.session.attempts if not a.reverted
                     and not (a.verification is not None and a.verification.passed)]
        assert len(open_ones) <= 1
        assert all(a in self.session.attempts[-1:] for a in open_ones)

    @invariant()
    def an_approach_with_three_strikes_is_never_diagnosed_again(self) -> None:
        if self.session.phase == "gate" and self.session.diagnosis is not None:
            assert self.session.diagnosis.approach not in self.session.struck_out
        for approach in self.session.struck_out:
            failed = [a for a in self.session.attempts if a.approach == approach and a.reverted]
            assert len(failed) == STRIKES_OUT

    @invariant()
    def the_log_gives_the_same_session_again(self) -> None:
        replayed = [ev.EVENTS.validate_python(e.to_json()) for e in self.log]
        assert through(new(), *replayed) == self.session


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
