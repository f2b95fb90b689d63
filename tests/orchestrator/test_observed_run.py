"""A session whose person agreed to a command does not stop at a suspicion: the command is run once, in a copy."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from traindx import rerun
from traindx.diagnose import diagnose
from traindx.investigators.base import Case
from traindx.investigators.observed_run import KEPT, at_most, lacked, with_observed_run
from traindx.model import Artifacts, Symptom, Verify
from traindx.session import run_debug_session_sync

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"
FLAT = "".join(f"step {i} loss {2.302 + 0.001 * (i % 3):.4f} acc 0.101\n" for i in range(60))
SHOWS = ("print('ValueError: Attempting to unscale FP16 gradients.'); open('made.txt', 'a').write('x')\n"
         "raise SystemExit(1)\n")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    work = tmp_path / "work"
    work.mkdir()
    (work / "log.txt").write_text(FLAT)
    (work / "train.py").write_text(SHOWS)
    return Case(symptom=Symptom(observed="it does not learn"), artifacts=Artifacts(), workspace=work,
                scratch=tmp_path / "scratch", allow_run=True, verify=Verify(command=f"{sys.executable} train.py"))


def test_the_command_is_run_once_and_what_it_showed_is_kept(case: Case) -> None:
    report = diagnose([case.workspace], root=case.workspace)
    after = with_observed_run(report, case, may_run=True)
    assert any("was run again in a copy" in r for r in after.remarks)
    assert not (case.workspace / "made.txt").exists(), "a copy is run"
    kept = case.scratch / "evidence" / "run-0" / KEPT
    stamp = kept.stat().st_mtime_ns
    again = with_observed_run(report, case, may_run=True)
    assert kept.stat().st_mtime_ns == stamp
    assert again.remarks == after.remarks


def test_a_look_before_it_runs_nothing(case: Case) -> None:
    report = diagnose([case.workspace], root=case.workspace)
    assert with_observed_run(report, case, may_run=False) is report
    assert not case.scratch.exists()


@pytest.mark.parametrize("change", [{"allow_run": False}, {"verify": None}])
def test_without_consent_or_a_command_nothing_is_run(case: Case, change: dict[str, object]) -> None:
    report = diagnose([case.workspace], root=case.workspace)
    assert with_observed_run(report, replace(case, **change), may_run=True) is report  # type: ignore[arg-type]
    assert not case.scratch.exists()


def test_what_cannot_be_read_again_counts_as_not_there(case: Case) -> None:
    kept = case.scratch / "evidence" / "run-0" / KEPT
    kept.parent.mkdir(parents=True)
    kept.write_text("{half")
    report = diagnose([case.workspace], root=case.workspace)
    assert with_observed_run(report, case, may_run=False) is report


def test_the_threads_that_the_person_set_are_those_of_the_copy():
    from traindx.experiment_place import THREADS, threads_for

    assert threads_for({"OMP_NUM_THREADS": "1"}) == dict.fromkeys(THREADS[1:], "1")
    assert threads_for({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "3"})["OPENBLAS_NUM_THREADS"] == "1"
    for odd in ({}, {"OMP_NUM_THREADS": "2,3"}, {"OMP_NUM_THREADS": ""}):
        given = threads_for(odd, at_once=10_000)
        assert {given[n] for n in THREADS[1:]} == {"1"}


def test_a_run_that_was_killed_in_the_midst_is_made_again(case: Case) -> None:
    folder = case.scratch / "evidence" / "run-0"
    (folder / "copy").mkdir(parents=True)
    (folder / "copy" / "train.py").write_text("half a copy")
    report = diagnose([case.workspace], root=case.workspace)
    after = with_observed_run(report, case, may_run=True)
    assert any("was run again in a copy" in r for r in after.remarks), after.remarks
    assert not (folder / "copy" / "train.py").exists() or "half" not in (folder / "copy" / "train.py").read_text()


def test_a_process_that_takes_over_runs_nothing_twice(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after the run and before what it showed was kept."""
    report = diagnose([case.workspace], root=case.workspace)
    first = with_observed_run(report, case, may_run=True)
    folder = case.scratch / "evidence" / "run-0"
    (folder / KEPT).unlink()
    with monkeypatch.context() as nothing_runs:
        nothing_runs.setattr(rerun, "run_here", lambda _: pytest.fail("run again"))
        again = with_observed_run(report, case, may_run=True)
    assert again.remarks == first.remarks
    (folder / KEPT).unlink()
    (case.workspace / "train.py").write_text(f"{SHOWS}# another program\n")
    other = with_observed_run(report, case, may_run=True)
    assert other.remarks
    assert "another program" in (folder / "copy" / "train.py").read_text()


def test_a_run_that_was_cut_off_is_made_anew(case: Case) -> None:
    folder = case.scratch / "evidence" / "run-0"
    (folder / "copy").mkdir(parents=True)
    (folder / "run").mkdir()
    (folder / rerun.MADE).write_text("{half")
    (folder / "experiments" / "runs").mkdir(parents=True)
    after = with_observed_run(diagnose([case.workspace], root=case.workspace), case, may_run=True)
    assert any("was run again in a copy" in r for r in after.remarks)
    assert (folder / "experiments" / "runs").is_dir(), "what experiments have run is kept by content"


def test_the_seconds_that_it_may_take_are_known_before() -> None:
    assert at_most(1000.0, Verify(command="x", timeout=60.0)) == 60.0 + 200.0
    assert at_most(10_000.0, Verify(command="x")) == 1800.0 + 300.0


def test_a_script_is_told_the_minutes_and_the_phases(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    run_debug_session_sync("it does not learn", case.workspace, verify=case.verify, allow_run=True, report=False)
    said = capsys.readouterr().err.splitlines()
    assert "traindx: gathering evidence" in said
    assert any("reading leaves the cause open" in line and line.endswith(" min at most") for line in said)


def test_minutes_that_nothing_will_take_are_not_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = shutil.copytree(EXAMPLE, tmp_path / "run")
    result = run_debug_session_sync("loss is NaN", work, verify="python train.py", allow_run=True, report=False)
    assert result.status == "awaiting_approval", result.reason
    assert " min at most" not in capsys.readouterr().err


SLOW = "import time\ntime.sleep(300)\n"


def test_a_run_that_the_session_has_no_time_for_says_so_and_what_to_type(case: Case) -> None:
    (case.workspace / "train.py").write_text(SLOW)
    short = replace(case, seconds_left=5.0)
    after = with_observed_run(diagnose([case.workspace], root=case.workspace), short, may_run=True)
    said = lacked(short)
    assert " was stopped after 2 s, 40 % of what the session may take, and no experiment was made" in said
    assert after.extra_checks[-1] in said
    assert shlex.split(after.extra_checks[-1])[:2] == ["traindx", "debug"]
    assert after.extra_checks[-1].endswith(" --run --budget 20")


@pytest.mark.slow
def test_a_run_that_had_time_lacks_nothing(case: Case) -> None:
    (case.workspace / "train.py").write_text(f"print({FLAT!r})\n")
    with_observed_run(diagnose([case.workspace], root=case.workspace), case, may_run=True)
    assert lacked(case) == ""


def test_a_command_that_trained_nothing_is_told(case: Case) -> None:
    with_observed_run(diagnose([case.workspace], root=case.workspace), case, may_run=True)
    assert "exit code 1" in lacked(case)
    assert "Attempting to unscale" in lacked(case)


def test_what_was_left_out_stands_in_the_reason_of_the_session(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "The budget of 60 s is spent. It left out 2 more experiments of about 80 s in all: traindx diagnose X"
    monkeypatch.setattr("traindx.investigators.offline.lacked", lambda case: told)
    result = run_debug_session_sync("it does not learn", case.workspace, report=False)
    assert result.status == "needs_more_data"
    assert told in result.reason


def test_what_runs_is_said_with_its_hour_and_what_was_run_before_is_not(case: Case) -> None:
    heard: list[str] = []
    told = replace(case, say=heard.append)
    report = diagnose([case.workspace], root=case.workspace)
    with_observed_run(report, told, may_run=True)
    assert heard[0].startswith("reading leaves the cause open: ")
    assert "train.py` runs in a copy with instruments attached, " in heard[1]
    assert re.search(r"\d+ s at most, since \d\d:\d\d:\d\d$", heard[1])
    heard.clear()
    with_observed_run(report, told, may_run=True)
    assert heard == []


def test_a_job_without_a_terminal_is_told_what_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.txt").write_text(FLAT)
    (tmp_path / "train.py").write_text(SHOWS)
    run_debug_session_sync("it does not learn", tmp_path, verify=f"{sys.executable} train.py", allow_run=True)
    assert re.search(r"^traindx: .*runs in a copy .* since \d\d:\d\d:\d\d$", capfd.readouterr().err, re.MULTILINE)
