"""The unfixed code runs first, in a copy, as often as noise asks for, and never twice for nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined, fix, replace_line

from traindx import protected_copy
from traindx.model import Budget, Verification, Verify
from traindx.session import confirm_fix, resume_session_sync, run_debug_session_sync
from traindx.steps import baseline as step
from traindx.tried_diffs import TriedDiffs
from traindx.turn import Interruption
from traindx_tools.errors import BadUsage

RUN = f"{sys.executable} train.py"
NOISY = ("import random\nlearning_rate = 10.0\nfor step in range(200):\n"
         "    print(f'step {step} loss {1 / (1 + step * learning_rate) + random.random():.4f}')\n")


def fixed_by(edit=None, metric: str = "loss falls below 1 within 20 steps"):
    return diagnosis(fix(edit or replace_line("learning_rate = 0.1")).model_copy(update={"metric": metric}))


def start(workspace: Path, said=None, **options: object):
    return run_debug_session_sync("the loss explodes", workspace, investigator=Scripted([said or fixed_by()]),
                                  **{"verify": RUN, "allow_run": True, "approve": approve(), "report": False,
                                     **options})


def seen(result) -> Verification:
    found = result.attempts[-1].verification
    assert found is not None
    return found


def effects(tmp_path: Path, **more: Any) -> Verify:
    """A verification that leaves a trace outside of the workspace each time it is run."""
    return Verify(command=f"echo run >> {tmp_path}/effects; grep -q 'learning_rate = 0.1' train.py",
                  writable=(str(tmp_path),), **more)


def runs(tmp_path: Path) -> int:
    return (tmp_path / "effects").read_text().count("run")


def test_a_loss_that_explodes_without_the_fix_and_falls_with_it_is_fixed(workspace: Path) -> None:
    result = start(workspace)
    assert (result.status, result.verification) == ("fixed", "fixed")
    assert any("the changed line train.py:4 was executed" in n for n in seen(result).notes)
    assert any(n.startswith("baseline: the command was run once on the unfixed code, in a copy")
               for n in seen(result).notes)
    assert {r.name: r.change for r in seen(result).table} == {"how it ends": "better", "loss": "better"}
    assert (workspace / "train.py").read_text() == FIXED
    assert not list((workspace / "scratch/debug/baselines").glob("*/*/copy*")), "the copy is gone"


@pytest.mark.slow
def test_a_fix_without_any_effect_is_a_strike_and_taken_back(workspace: Path) -> None:
    still = TRAIN.replace("learning_rate = 10.0", "learning_rate = 0.0")
    (workspace / "train.py").write_text(still)
    same = replace_line("learning_rate = 0.00", old="learning_rate = 0.0")
    result = start(workspace, fixed_by(same, "loss moves"), budget=Budget(attempts=1))
    assert seen(result).result == "no_effect"
    assert "is the same in every one of 200 records" in seen(result).reasons[0]
    assert result.attempts[-1].reverted
    assert (workspace / "train.py").read_text() == still
    assert (workspace / "scratch/debug/strikes.jsonl").read_text().count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["loss falls", "loss is finite"])
def test_a_command_that_does_not_show_the_fault_is_no_strike_and_the_fix_stays(workspace: Path, metric: str) -> None:
    (workspace / "train.py").write_text(FIXED)
    result = start(workspace, fixed_by(replace_line("learning_rate = 0.10", old="learning_rate = 0.1"), metric))
    assert (result.status, seen(result).result) == ("effect_not_shown", "passed_effect_not_shown")
    assert "the command does not show the fault on the unfixed code" in seen(result).reasons[0]
    assert "learning_rate = 0.10\n" in (workspace / "train.py").read_text()
    assert not (workspace / "scratch/debug/strikes.jsonl").exists()


@pytest.mark.slow
def test_a_command_that_deletes_source_files_in_the_copy_is_not_run_in_the_workspace(workspace: Path) -> None:
    result = start(workspace, verify=f"{RUN}; rm -f other.py")
    assert (result.status, "other.py is gone" in result.reason) == ("interrupted", True)
    assert (workspace / "other.py").exists()
    again = resume_session_sync(result.folder, investigator=Scripted([fixed_by()]), report=False)
    assert (again.status, (workspace / "other.py").exists()) == ("interrupted", True)
    after = resume_session_sync(result.folder, verify=f"touch new.py; rm new.py; {RUN}",
                                investigator=Scripted([fixed_by()]), report=False)
    assert after.status == "fixed", "what the command made itself it may delete"


def test_a_copy_that_was_removed_after_a_run_was_cut_off_is_no_deletion(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/train.py").write_text(TRAIN)
    (tmp_path / step.SOURCES).write_text('["train.py"]')
    step._stop_if_deleted(tmp_path)
    (tmp_path / "copy/train.py").unlink()
    step._stop_if_deleted(tmp_path)
    (tmp_path / "deleted.json").unlink()
    with pytest.raises(Interruption, match="is gone after it"):
        step._stop_if_deleted(tmp_path)


@pytest.mark.slow
def test_a_change_that_the_command_does_not_execute_waits_for_another_command(workspace: Path) -> None:
    (workspace / "train.py").write_text(TRAIN.replace("weight = 1.0", "weight = 1.0\nimport sys; sys.exit(0)"))
    last = replace_line("    weight -= 0.1 * 2 * weight", line=8, old="    weight -= learning_rate * 2 * weight")
    result = start(workspace, fixed_by(last))
    assert (result.status, result.verification) == ("not_executed", "not_executed")
    assert not (workspace / "scratch/debug/strikes.jsonl").exists()
    assert not result.attempts[-1].reverted
    again = resume_session_sync(result.folder, investigator=Scripted([fixed_by(last)]), report=False)
    assert again.status == "not_executed", "nothing new was given, nothing is run"
    after = resume_session_sync(result.folder, verify=f"grep -v exit train.py > t.py; mv t.py train.py; {RUN}",
                                investigator=Scripted([fixed_by(last)]), report=False)
    assert (after.status, len(after.attempts)) == ("fixed", 1)


@pytest.mark.parametrize(("passed", "status"), [(True, "fixed"), (False, "interrupted")])
def test_what_was_not_shown_is_decided_by_a_person(workspace: Path, passed: bool, status: str) -> None:
    result = start(workspace, verify="true", budget=Budget(attempts=1))
    assert (result.status, seen(result).result) == ("effect_not_shown", "passed_effect_not_shown")
    assert (workspace / "train.py").read_text() == FIXED
    confirm_fix(result.folder, passed=passed, comment="I looked at the curve")
    after = resume_session_sync(result.folder, investigator=Scripted([fixed_by()]), report=False)
    assert after.status == status
    assert after.attempts[-1].reverted is not passed
    assert TriedDiffs(workspace).entries()[0].result == ("fixed" if passed else "failed")


def test_the_unfixed_code_is_run_once_for_two_sessions_of_the_same_code(workspace: Path, tmp_path: Path) -> None:
    for _ in range(2):
        (workspace / "train.py").write_text(TRAIN)
        assert start(workspace, verify=effects(tmp_path), examine=examined).status == "fixed"
    assert runs(tmp_path) == 3
    (workspace / "train.py").write_text(TRAIN)
    (workspace / "other.py").write_text("value = 2\n")
    assert start(workspace, verify=effects(tmp_path), examine=examined).status == "fixed"
    assert runs(tmp_path) == 5, "another workspace, another baseline"


def test_it_is_repeated_where_the_promised_metric_differs_from_run_to_run(workspace: Path) -> None:
    (workspace / "train.py").write_text(NOISY)
    edit = replace_line("learning_rate = 9.0", line=2)
    result = start(workspace, fixed_by(edit))
    assert seen(result).result == "passed_effect_not_shown"
    assert "within the spread" in seen(result).reasons[0]
    assert any("3 times on the unfixed code" in n and "60 s in all" in n for n in seen(result).notes)


def test_the_time_for_repeats_is_bounded(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "REPEAT_SECONDS", 0.0)
    (workspace / "train.py").write_text(NOISY)
    result = start(workspace, fixed_by(replace_line("learning_rate = 9.0", line=2)))
    assert any("once on the unfixed code" in n for n in seen(result).notes)


def test_without_a_baseline_it_says_so(workspace: Path, tmp_path: Path) -> None:
    result = start(workspace, verify=effects(tmp_path, baseline=False), examine=examined)
    assert (result.status, runs(tmp_path)) == ("effect_not_shown", 1)
    assert any("no baseline: not run, as you wished (--no-baseline)" in n for n in seen(result).notes)


def test_a_log_of_the_same_command_is_the_baseline(workspace: Path) -> None:
    (workspace / "old.log").write_text("".join(f"step {n} loss {10.0 + n:.4g}\n" for n in range(200)))
    result = start(workspace, verify=Verify(command=RUN, baseline_run=("old.log",)))
    assert result.status == "fixed"
    assert not (workspace / "scratch/debug/baselines").exists()
    assert any("baseline: the unfixed code: old.log, as you said" in n for n in seen(result).notes)


def test_a_log_that_is_not_there_is_said(workspace: Path) -> None:
    result = start(workspace, verify=Verify(command=RUN, baseline_run=("gone.log",)))
    assert result.status == "interrupted"
    assert "gone.log" in result.reason


def test_a_workspace_that_is_too_large_has_no_baseline_and_says_why(workspace: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_copy, "COPY_LIMIT", 10)
    result = start(workspace)
    assert result.status == "effect_not_shown"
    assert any("the unfixed code could not be run: the workspace holds" in n for n in seen(result).notes)


def test_a_command_that_names_the_workspace_meets_the_copy(workspace: Path) -> None:
    result = start(workspace, verify=f"cd {workspace} && {sys.executable} {workspace}/train.py")
    assert result.status == "fixed", "the baseline ran the unfixed code, not the workspace's"


def test_a_program_that_takes_the_changed_file_from_the_workspace_has_no_baseline(workspace: Path) -> None:
    """As with `pip install -e`: the copy would run the fixed code, and nothing would seem to move."""
    (workspace / "main.py").write_text(f"import sys\nsys.path.insert(0, {str(workspace)!r})\nimport train\n")
    result = start(workspace, verify=f"{sys.executable} main.py")
    assert result.status == "effect_not_shown"
    assert any("not take the changed file from the copy" in n for n in seen(result).notes)


def test_an_error_of_the_change_itself_leaves_the_cause_standing(workspace: Path) -> None:
    bad = diagnosis(fix(replace_line("learning_rate = undefined_name")))
    result = start(workspace, bad, budget=Budget(attempts=1))
    assert (seen(result).result, seen(result).own_error) == (
        "failed", "NameError: name 'undefined_name' is not defined")
    assert TriedDiffs(workspace).entries()[0].own_error.startswith("NameError")
    assert (workspace / "train.py").read_text() == TRAIN


def test_options_that_contradict_each_other_are_refused() -> None:
    from click.testing import CliRunner

    from traindx.commands.debug import command

    for more in (["--no-baseline"], ["--baseline", "."], ["--verify", "x", "--no-baseline", "--baseline", "."]):
        done = CliRunner().invoke(command, [".", *more])
        assert isinstance(done.exception, BadUsage)
        assert "exclude each other" in str(done.exception)
