"""The agreed command verifies a fix, and strikes are counted where it failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from closed_gate import RUNNER
from gate_words import DIAGNOSIS

from traindx.model import Approach, Attempt
from traindx.strikes import Ledger


def test_a_failed_verification_takes_the_fix_back_and_counts_a_strike(talk, work: Path) -> None:
    before = (work / "train.py").read_text()
    talk.opens()
    talk.shows()
    talk.prompt("approve B")
    talk.edit(old="1.0 - p + EPS", new="max(1.0 - p, EPS)", agreed=True)
    talk.edit("tests/test_loss.py", "", "def test_loss():\n    pass\n", agreed=True)
    said = talk.verifies("python -m pytest tests")
    assert "Strike 1: more evidence" in said
    assert (work / "train.py").read_text() == before
    assert not (work / "tests" / "test_loss.py").exists()
    assert talk.edit() != "", "the approval ended with the strike"
    assert talk.state.phase == "gather"


def test_what_somebody_else_changed_meanwhile_is_not_taken_back(talk, work: Path) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    talk.edit()
    (work / "train.py").write_text("# the person was here\n")
    assert "Not restored, because somebody else changed it since: train.py" in talk.verifies()
    assert (work / "train.py").read_text() == "# the person was here\n"


@pytest.fixture
def fixed(talk):
    """A conversation with an approved edit that waits for its verification."""
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    assert talk.edit() == ""
    return talk


@pytest.mark.parametrize("code", [75, 126, 127, 130, 137])
def test_a_verification_that_never_ran_is_a_question(fixed, code: int) -> None:
    said = fixed.verifies(code=code)
    assert "verifies nothing" in said
    assert '"the fix failed" or "the fix works"' in said
    assert fixed.state.strikes == ()
    assert not fixed.state.approval.passed


@pytest.mark.parametrize("code", [1, 2, 4, 5, 139])
def test_any_other_end_is_a_strike(fixed, code: int) -> None:
    assert "taken back" in fixed.verifies(code=code)
    assert len(fixed.state.strikes) == 1


ALIKE = [
    "python ./train.py --steps 1300", "python3 train.py --steps 1300", "/usr/bin/python3.11 train.py --steps 1300",
    "sh -c 'python train.py --steps 1300'", "X=1 python train.py --steps 1300", "python train.py --steps 1300 2>&1",
    "cd scratch && python ../train.py; python train.py --steps 1300", "python train.py --steps 1300 | cat",
    "python train.py --steps 1300 || true", "time python train.py --steps 1300 > out"]


OTHERS = [
    "python train.py --steps 13000", "true", "python train.py --steps 1300 --lr 1", "python other.py --steps 1300",
    "python train.py", "grep -n steps train.py", "python train.py --steps 1300 7"]


@pytest.mark.parametrize("command", [*ALIKE, *OTHERS])
@pytest.mark.parametrize("code", [0, 1])
def test_another_command_verifies_nothing_and_is_no_strike(fixed, command: str, code: int) -> None:
    """One that is spelled otherwise and failed is a question: it is neither a strike nor passed over."""
    said = fixed.verifies(command, code=code)
    assert ("run exactly `python train.py --steps 1300`" in said) == (code == 1 and command in ALIKE), said
    assert ('"the fix failed" or "the fix works"' in said) == (said != "")
    assert fixed.state.strikes == ()
    assert not fixed.state.approval.passed


@pytest.mark.parametrize("code", [126, 127, 130])
def test_another_spelling_that_never_ran_says_nothing(fixed, code: int) -> None:
    assert fixed.verifies("python3 ./train.py --steps 1300", code=code) == ""


def test_another_spelling_of_pytest_is_one_as_well() -> None:
    from traindx.gate_hook.state import State
    from traindx.gate_hook.verification import resembled

    state = State("/w", "s", "now")
    assert resembled("pytest tests -x; echo $?", ("python -m pytest tests -x",), state, "/p") is not None
    assert resembled("python3 -m pytest tests -x", ("pytest tests -x",), state, "/p") is not None
    assert resembled("pytest tests", ("pytest tests -x",), state, "/p") is None


def test_the_agreed_command_counts_as_it_is_written_and_in_a_copy(fixed) -> None:
    line = fixed.runs("python  train.py   --steps 1300")
    said = fixed.event("PostToolUse", tool_name="Bash", tool_input={"command": line}, tool_response={})
    assert "exit code 0" in said["additionalContext"]


def test_the_agreed_command_starts_with_nothing_that_earlier_commands_left(fixed) -> None:
    assert " --fresh --shell " in fixed.runs("python train.py --steps 1300")
    assert " --fresh --copy --shell " in fixed.runs(f"python3 {RUNNER} --copy -- python train.py --steps 1300")
    assert "--fresh" not in fixed.runs("python train.py --steps 1300 || true")


def test_in_another_folder_the_same_words_are_another_command(fixed, work: Path) -> None:
    (work / "scratch" / "debug").mkdir(parents=True, exist_ok=True)
    for command, cwd in (("python train.py --steps 1300", work / "scratch" / "debug"),
                         ("cd scratch/debug && python train.py --steps 1300", work)):
        said = fixed.event("PostToolUse", tool_name="Bash", cwd=str(cwd), tool_input={"command": fixed.runs(command)},
                           tool_response={})
        assert said == {}, command
    said = fixed.event("PostToolUse", tool_name="Bash", cwd=str(work / "scratch" / "debug"), tool_response={},
                       tool_input={"command": fixed.runs(f"cd {work} && python train.py --steps 1300")})
    assert "exit code 0" in said["additionalContext"]


def test_a_verification_in_the_background_has_no_end_yet(fixed) -> None:
    line = fixed.runs("python train.py --steps 1300")
    said = fixed.event("PostToolUse", tool_name="Bash", tool_response={"backgroundTaskId": "b1"},
                       tool_input={"command": line, "run_in_background": True})
    assert "in the foreground" in said["additionalContext"]
    assert not fixed.state.approval.passed


def test_a_turn_that_ends_without_the_verification_is_sent_back_once_then_the_person_hears_it(fixed) -> None:
    said = fixed.event("Stop", last_assistant_message="done", stop_hook_active=False)
    assert said["decision"] == "block"
    assert "exactly `python train.py --steps 1300`" in said["reason"]
    said = fixed.event("Stop", last_assistant_message="done", stop_hook_active=True)
    assert "decision" not in said
    assert "was not verified" in said["systemMessage"]


def test_a_failure_before_the_fix_is_no_strike(talk) -> None:
    """The failing test comes first."""
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    assert talk.verifies() == ""
    assert talk.state.strikes == ()


def test_three_failed_fixes_close_the_gate_until_the_person_decides(talk) -> None:
    talk.opens()
    for attempt in range(3):
        talk.shows(DIAGNOSIS.replace("EPS = 1e-6", f"EPS = 1e-{6 - attempt}"))
        assert "is approved" in talk.prompt("approve A")
        assert talk.edit(new=f"EPS = 1e-{6 - attempt}") == ""
        said = talk.verifies()
    assert "3 fixes of this approach failed" in said
    talk.shows()
    assert "No further variation" in talk.prompt("approve A")
    assert "3 fixes failed their verification" in talk.edit()
    assert talk.state.phase == "halted"
    assert "different approach" in talk.prompt("try a different approach")
    talk.shows()
    assert "No further variation" in talk.prompt("approve A"), "the struck lines stay refused"
    talk.prompt("try a different approach")
    talk.shows()
    assert "is approved" in talk.prompt("approve B"), "other lines are another approach"
    assert talk.edit(old="1.0 - p + EPS", new="max(1.0 - p, EPS)", agreed=True) == ""


def test_strikes_outlive_the_session_and_are_reopened_with_a_reason(talk) -> None:
    talk.opens()
    for _ in range(3):
        talk.shows()
        talk.prompt("approve A")
        talk.edit()
        talk.prompt("the fix failed")
    talk.prompt("close the debug session")
    talk.opens()
    talk.shows()
    assert "No further variation" in talk.prompt("approve A")
    assert "say what is different now" in talk.prompt("reopen the approach")
    talk.prompt("reopen the approach because the wrong file was verified")
    talk.shows()
    assert "is approved" in talk.prompt("approve A")


def test_a_strike_is_in_the_ledger_that_the_orchestrator_counts(talk, work: Path) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    talk.edit()
    talk.verifies()
    attempt = Attempt(number=1, diagnosis_digest="d", option="A", summary="again", places=(("train.py", 3, 3),),
                      approach=Approach(failure_mode="another name", component="train.py"))
    counted = Ledger(work).strikes(attempt.approach, attempt)
    assert [s.places for s in counted] == [(("train.py", 3, 3),)]
    assert "exit code 1" in counted[0].learned[0]


def test_the_next_fix_waits_for_the_verification_of_the_last(talk) -> None:
    talk.opens()
    talk.shows()
    talk.prompt("approve A")
    talk.edit()
    talk.shows()
    assert "was not verified" in talk.prompt("approve B")
    assert "exit code 0" in talk.verifies(code=0)
    assert "is approved" in talk.prompt("approve B")
