"""A comment at the gate: what it did is said from every face, with the experiment that tests it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted import diagnosis

from traindx.events import Decided, Diagnosed
from traindx.group import traindx
from traindx.model import Decision
from traindx.revised import revised
from traindx.session import decide, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_result import SessionResult

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def waiting(tmp_path: Path) -> SessionResult:
    shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "w")
    return run_debug_session_sync("loss is nan", tmp_path / "w", verify="python train.py", report=True)


def after(waiting: SessionResult, comment: str) -> SessionResult:
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.revise(waiting.diagnosis, comment))
    return resume_session_sync(waiting.folder)


def test_nothing_was_revised_at_first(waiting: SessionResult) -> None:
    assert waiting.status == "awaiting_approval"
    assert not waiting.revised
    assert not waiting.tests


def test_the_same_cause_is_said_to_be_the_same_with_what_carries_it(waiting: SessionResult) -> None:
    again = after(waiting, "it is the learning rate.")
    assert again.revised.startswith('After your comment "it is the learning rate": the same cause, at ')
    assert "What carries it: " in again.revised
    assert again.tests
    assert all(t.startswith("traindx experiment ") and " --change " in t for t in again.tests)
    report = (Path(again.folder) / "report.html").read_text(encoding="utf-8")
    assert "the same cause, at " in report.partition("<nav>")[0]
    shown = CliRunner().invoke(traindx, ["show", again.session, "--workspace", again.workspace])
    assert "the same cause, at " in shown.output


def test_a_comment_that_claims_nothing_offers_no_experiment(waiting: SessionResult) -> None:
    assert after(waiting, "it is the learning rate").tests
    again = after(read_result(waiting.folder), "hmm")
    assert not again.tests, "those of the comment before are not this one's"
    assert again.revised.startswith('After your comment "hmm": the same cause')


def test_after_an_approval_nothing_is_said_of_it(waiting: SessionResult) -> None:
    again = after(waiting, "hmm")
    assert again.diagnosis is not None
    approved = decide(again.folder, Decision.approve(again.diagnosis, "A"))
    assert not approved.revised


def test_another_cause_is_named_beside_the_one_before() -> None:
    def made(mode: str, sure: float) -> Diagnosed:
        return Diagnosed(diagnosis=diagnosis().model_copy(update={"failure_mode": mode, "claim": f"It is {mode}.",
                                                                "confidence": sure, "location": "train.py:3"}))

    sent = Decided(decision=Decision(verdict="revise", diagnosis_digest="a" * 64, comment="look\nat [x]"))
    told = revised([made("lr.too-high", 0.8), sent, made("loss.broadcast", 0.97)])
    assert told == ('After your comment "look at [x]": another cause, at 97 %: It is loss.broadcast (train.py:3). '
                    "Before it was, at 80 %: It is lr.too-high.")
    assert not revised([made("lr.too-high", 0.8), sent])
    assert not revised([])


@pytest.mark.parametrize("comment", ["It is the learning rate: 0.5 is too high", "the lr is the cause, it rises"])
def test_a_claim_about_the_cause_is_no_symptom_that_takes_its_confidence(waiting: SessionResult, comment: str) -> None:
    assert waiting.diagnosis is not None
    again = after(waiting, comment)
    assert again.status == "awaiting_approval", again.reason
    assert again.diagnosis is not None
    assert again.diagnosis.confidence == pytest.approx(waiting.diagnosis.confidence, abs=0.1)


def test_what_was_seen_is_still_looked_up(waiting: SessionResult) -> None:
    again = after(waiting, "the accuracy fell to zero at step 500")
    assert again.diagnosis is not None
    said = again.diagnosis.root_cause.partition('You said: "the accuracy fell to zero at step 500": ')[2]
    assert said.startswith("looked up and ")
    assert "val_acc goes from" in said


def test_a_cell_shows_the_gate_while_it_waits_and_what_was_measured_afterwards(waiting: SessionResult) -> None:
    again = after(waiting, "hmm")
    assert "After your comment" in again._repr_html_()
    assert "Before anything is changed" in again._repr_html_()
    assert again.diagnosis is not None
    decide(again.folder, Decision.approve(again.diagnosis, "A"))
    fixed = resume_session_sync(again.folder, allow_run=True)
    assert fixed.status == "fixed", fixed.reason
    assert "Before anything is changed" not in fixed._repr_html_()
    assert "loss" in fixed._repr_html_().partition("fix 1, option A: Guard the logarithm, train.py:20")[2]
    assert "nan -&gt; 0.1" in fixed._repr_html_()
