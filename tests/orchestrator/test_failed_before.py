"""Fixes that failed in earlier sessions of a folder: what they take from their cause, and how they are told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scripted import Scripted, approve, diagnosis, examined, fix, replace_line

from traindx import failed_before
from traindx.model import Approach, Direction
from traindx.session import direct, run_debug_session_sync
from traindx.strikes import Ledger, Strike
from traindx.tried_diffs import TriedDiff, TriedDiffs

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"
LOG = Approach(failure_mode="loss.log-of-zero", component="train.py")
FAILS = "grep -q 'learning_rate = 0.1' train.py"


def strike(number: int, session: str = "20260101-000000-abcdef", symptom_stayed: bool = True) -> Strike:
    return Strike(key=f"{session}/{number}", approach=LOG, summary="Guard the logarithm",
                  places=(("train.py", 20, 20),),
                  learned=("it failed",), symptom_stayed=symptom_stayed)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "work"))


@pytest.mark.slow
def test_a_strike_of_another_session_lowers_its_cause_and_two_ask_for_more(work: Path) -> None:
    fresh = run_debug_session_sync("loss is nan", work, report=False)
    assert fresh.diagnosis is not None
    Ledger(work).count(strike(1))
    once = run_debug_session_sync("loss is nan", work, report=False)
    assert once.diagnosis is not None
    assert once.diagnosis.confidence < fresh.diagnosis.confidence
    assert "tried once before in this folder and failed" in once.diagnosis.root_cause
    assert "session 20260101-000000-abcdef (it failed)" in once.diagnosis.root_cause
    Ledger(work).count(strike(2))
    twice = run_debug_session_sync("loss is nan", work, report=False)
    assert twice.status == "needs_more_data"
    assert "tried 2 times before in this folder" in twice.reason


@pytest.mark.slow
def test_a_command_that_failed_without_showing_the_symptom_says_nothing_of_the_cause(work: Path) -> None:
    fresh = run_debug_session_sync("loss is nan", work, report=False)
    for number in (1, 2):
        Ledger(work).count(strike(number, symptom_stayed=False))
    again = run_debug_session_sync("loss is nan", work, report=False)
    assert fresh.diagnosis is not None
    assert again.diagnosis is not None
    assert again.diagnosis.confidence == fresh.diagnosis.confidence
    assert "tried 2 times before in this folder" in again.diagnosis.root_cause


def test_an_error_of_its_own_and_a_reopened_approach_speak_against_no_cause(work: Path) -> None:
    Ledger(work).count(strike(1))
    assert len(failed_before.strikes_before(work, "another")) == 1
    assert failed_before.strikes_before(work, strike(1).key.partition("/")[0]) == ()
    TriedDiffs(work).add(TriedDiff(key=strike(1).key, fingerprint="f", session="s", summary="x", result="failed",
                                   own_error="TypeError: x"))
    assert failed_before.strikes_before(work, "another") == ()
    Ledger(work).count(strike(2))
    Ledger(work).reopen(LOG, "ann", "the data are others")
    assert failed_before.strikes_before(work, "another") == ()


def test_a_damaged_ledger_says_nothing(work: Path) -> None:
    Ledger(work).count(strike(1))
    with Ledger(work).path.open("a") as file:
        file.write("no entry\n")
    assert failed_before.strikes_before(work, "another") == ()


def test_a_diff_that_helped_since_has_not_failed(work: Path) -> None:
    tried = TriedDiffs(work)
    for number, result in enumerate(("failed", "no_effect", "fixed", "failed")):
        tried.add(TriedDiff(key=f"s/{number}", fingerprint="f", session="s", summary="x", result=result))
    assert [d.key for d in tried.failed("f")] == ["s/3"]
    assert tried.failed("g") == ()


def test_three_strikes_name_the_session_that_is_asked_and_all_that_was_tried(workspace: Path) -> None:
    own = diagnosis().approach
    Ledger(workspace).count(strike(1).model_copy(update={"approach": own}))
    wrong = [diagnosis(fix(replace_line(f"learning_rate = {n}.0"), summary=f"Guess number {n}"),
                       confidence=0.9 - n / 100) for n in (7, 8)]
    halted = run_debug_session_sync("x", workspace, investigator=Scripted(wrong), examine=examined, report=False,
                                    approve=approve(), verify=FAILS, allow_run=True)
    assert halted.status == "three_strikes", halted.reason
    report = Path(halted.documents["strike_report.md"]).read_text()
    assert "Session 20260101-000000-abcdef, attempt 1" in report
    assert "Guard the logarithm" in report
    assert "Guess number 7" in report
    assert "Guess number 8" in report
    said = failed_before.open_decision(workspace, [str(own)])
    assert f"traindx resume {halted.session} --different or --stop" in said
    direct(halted.folder, Direction(choice="stop"))
    assert "until a person reopens that approach" in failed_before.open_decision(workspace, [str(own)])
    assert failed_before.open_decision(workspace, ["another in b.py"]) == ""
