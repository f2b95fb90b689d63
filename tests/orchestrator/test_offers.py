"""What is offered: a diff that passed its trial, the change in words where it failed, and a word on what was tried."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from traindx import patching
from traindx.diagnose import Report, diagnose
from traindx.hindrances import Change
from traindx.investigators.base import Case
from traindx.investigators.claude_code.concluding import after_its_trial
from traindx.investigators.offline import OfflineInvestigator, tried
from traindx.model import Approach, Attempt, Decision, Diagnosis, Fix, ProposedEdit, Symptom, Verification
from traindx.offers import FREE
from traindx.proposal import edits_of
from traindx.session import run_debug_session_sync
from traindx.tried_diffs import TriedDiff, TriedDiffs, fingerprint
from traindx_tools.finding import Finding
from traindx_tools.triage import Weighed

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "work"))


def with_patch(report: Report, replacement: str) -> Report:
    """The report, whose first cause proposes this instead."""
    first = report.seen.verdict.hypotheses[0]
    carrier = next(w.finding for w in first.speaks_for if w.finding.patch)
    worse = tuple(replace(p, replacement=replacement) for p in carrier.patch)

    def swapped(finding: Finding) -> Finding:
        return replace(finding, patch=worse) if finding is carrier else finding

    new = {id(f): swapped(f) for f in report.seen.findings}

    def all_swapped(weighed: tuple[Weighed, ...]) -> tuple[Weighed, ...]:
        return tuple(replace(w, finding=new.get(id(w.finding), w.finding)) for w in weighed)

    weighed = [replace(h, speaks_for=all_swapped(h.speaks_for), speaks_against=all_swapped(h.speaks_against))
               for h in report.seen.verdict.hypotheses]
    verdict = replace(report.seen.verdict, hypotheses=tuple(weighed))
    findings = tuple(new.values())
    return replace(report, seen=replace(report.seen, findings=findings, verdict=verdict))


def note(work: Path, report: Report, **outcome: object) -> None:
    """That this report's diff was tried."""
    edits = edits_of(report.seen.verdict.hypotheses[0], report.seen.findings, report.places)
    changes = [Change(p, a.decode(), b.decode()) for p, (a, b) in patching.preview(work, edits).items()]
    TriedDiffs(work).add(TriedDiff.model_validate({
        "key": "s1/1", "fingerprint": fingerprint(changes), "session": "s1", "summary": "x", "result": "failed",
        "reasons": ("exit code 1",), **outcome}))


def test_a_diff_that_passes_its_trial_is_offered(work: Path) -> None:
    report = diagnose(work)
    made = report.diagnosis
    assert made is not None
    assert report.offer(report.seen.verdict.hypotheses[0]) == FREE
    assert [f.option for f in made.options] == ["A", "B"]
    assert made.options[0].edits
    assert report.quick_fixes()


def test_a_diff_that_fails_its_trial_becomes_words_that_say_so(work: Path) -> None:
    report = with_patch(diagnose(work), "EPS = 1e-13")
    made = report.diagnosis
    assert made is not None
    targeted = made.option("A")
    assert targeted is not None
    assert targeted.edits == ()
    assert targeted.instructions
    assert "The diff for this was tried and is not offered: an audit of the result still finds C107" in (
        targeted.instructions[0].text)
    assert report.quick_fixes() == ()
    assert not any(f.get("patch") for f in report.result().findings if f["rule"] == "C107")


def test_a_diff_that_failed_before_is_said_and_the_other_option_comes_first(work: Path) -> None:
    report = diagnose(work)
    note(work, report)
    made = diagnose(work).diagnosis
    assert made is not None
    assert [f.option for f in made.options] == ["B", "A"]
    assert made.options[1].edits, "it is offered, with its history"
    assert "in session s1: failed (exit code 1)" in made.options[1].change
    assert "This diff was tried on" in made.questions[1]
    assert report.seen.verdict.status == "diagnosis_complete"


def test_a_diff_that_helped_before_stays_first_with_a_word_on_it(work: Path) -> None:
    note(work, diagnose(work), result="fixed")
    made = diagnose(work).diagnosis
    assert made is not None
    assert [f.option for f in made.options] == ["A", "B"]
    assert "in session s1: fixed" in made.options[0].change


def test_a_diff_that_brought_an_error_of_its_own_is_not_offered_again(work: Path) -> None:
    note(work, diagnose(work), own_error="ValueError: twice")
    made = diagnose(work).diagnosis
    assert made is not None
    assert (made.options[0].option, made.options[0].edits) == ("A", ())
    assert "in session s1" in made.options[0].instructions[0].text
    assert made.failure_mode == "loss.log-of-zero", "the cause stands"


def attempt(**seen: object) -> Attempt:
    return Attempt(number=1, diagnosis_digest="0" * 64, option="A",
                   approach=Approach(failure_mode="loss.log-of-zero", component="train.py"), summary="x",
                   places=(("train.py", 20, 20),), reverted=True,
                   verification=Verification.model_validate({"passed": False, "reasons": ("r",), **seen}))


def test_an_error_of_the_change_does_not_count_against_its_cause(work: Path, tmp_path: Path) -> None:
    def failed(**seen: object) -> frozenset[str]:
        return tried(Case(workspace=work, scratch=tmp_path, symptom=Symptom(observed="x"), attempts=(attempt(**seen),)))

    assert failed(result="failed", own_error="ValueError: twice") == frozenset()
    assert failed(result="failed") == failed(result="no_effect") == {"loss.log-of-zero"}
    assert failed(result="passed_effect_not_shown") == frozenset()


async def test_the_same_cause_is_diagnosed_again_after_an_error_of_the_change(work: Path, tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    note(work, diagnose(work), own_error="ValueError: twice")
    case = Case(workspace=work, scratch=tmp_path, symptom=Symptom(observed="loss is nan"),
                attempts=(attempt(result="failed", own_error="ValueError: twice"),))
    made = await OfflineInvestigator().diagnose(case)
    assert getattr(made, "failure_mode", None) == "loss.log-of-zero"
    assert [(f.option, f.edits) for f in getattr(made, "options", ())] == [("A", ()), ("B", ())]


@pytest.mark.slow
def test_a_session_goes_on_with_the_same_cause_after_a_diff_that_crashes(work: Path) -> None:
    """The trial could not see it (nobody had agreed to a run); the verification does, and B is still there."""

    class Crashing(OfflineInvestigator):
        async def report(self, case: Case) -> Report:
            return replace(with_patch(await super().report(case), "EPS = undefined_epsilon"), trial_run=None)

    shown: list[Diagnosis] = []

    def approve_once(made: Diagnosis) -> Decision | None:
        shown.append(made)
        return Decision.approve(made) if len(shown) == 1 else None

    before = (work / "train.py").read_text()
    result = run_debug_session_sync("loss is nan", work, verify=f"{sys.executable} train.py", allow_run=True,
                                    approve=approve_once, investigator=Crashing(), report=False)
    seen = result.attempts[0].verification
    assert seen is not None
    assert (seen.result, "NameError" in seen.own_error) == ("failed", True)
    assert (result.status, result.strikes) == ("awaiting_approval", 1)
    assert [d.failure_mode for d in shown] == ["loss.log-of-zero"] * 2
    targeted, broader = shown[1].options
    assert (targeted.option, targeted.edits, broader.option) == ("A", (), "B")
    assert "NameError" in targeted.instructions[0].text
    assert (work / "train.py").read_text() == before


@pytest.mark.parametrize("command", [f"{sys.executable} train.py", None])
def test_with_consent_the_diff_is_run(work: Path, tmp_path: Path, command: str | None) -> None:
    """The audit sees nothing wrong in a name that is not defined; the first step does."""
    from traindx.model import Verify
    from traindx.trial_run import TrialRun

    report = with_patch(diagnose(work), "EPS = undefined_epsilon")
    run = TrialRun(Verify(command=command), work, tmp_path / "s") if command else None
    offer = replace(report, trial_run=run).offer(report.seen.verdict.hypotheses[0])
    assert ("NameError" in offer.refused) is (command is not None)


@pytest.mark.parametrize(("replacement", "offered"), [("EPS = 1e-6", True), ("EPS = (", False)])
def test_a_diff_that_a_specialist_wrote_is_tried_too(work: Path, replacement: str, offered: bool) -> None:
    line = (work / "train.py").read_text().split("\n").index("EPS = 1e-12  # keeps the logarithms away from zero") + 1
    edit = ProposedEdit(path="train.py", line=line, end_line=line, replacement=replacement,
                        original="EPS = 1e-12  # keeps the logarithms away from zero")
    made = after_its_trial(Fix(option="A", summary="Widen the clamp", edits=(edit,)), diagnose(work))
    assert bool(made.edits) is offered
    assert ("does not parse" in "".join(i.text for i in made.instructions)) is not offered
    assert made.places == (("train.py", line, line),)
