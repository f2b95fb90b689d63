"""`traindx experiment` on programs without a framework: consent, verdicts, exit codes, the workspace left alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from traindx.cli import run as traindx
from traindx.experiment_place import ProtectedPlace
from traindx.experiments import Request, run_experiments
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.outcome import Outcome, parse_outcome
from traindx_tools.experiments.place import Prepared
from traindx_tools.experiments.reading import number
from traindx_tools.experiments.trace import Trace

PROGRAM = """
import math, os, random
random.seed(0)
rate = float(os.environ.get("RATE", "30"))
weight = 1.0 + 0.1 * random.random()
for step in range(1, 61):
    weight -= rate * 2 * weight
    loss = weight ** 2 if abs(weight) < 1e15 else math.nan
    print(f"step {step} loss {loss:.6g}", flush=True)
    if loss != loss:
        weight = 1e200
open("weights.txt", "w").write(str(weight))
"""
FOREVER = """
import itertools, time
for step in itertools.count(1):
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    time.sleep(0.01)
"""
COMMAND = f"{sys.executable} train.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    home = tmp_path / "project"
    home.mkdir()
    (home / "train.py").write_text(PROGRAM)
    (home / "data.csv").write_text("a,b\n1,2\n")
    return home


def place(project: Path) -> ProtectedPlace:
    return ProtectedPlace(project, project.parent / "runs")


def never(_: Trace) -> bool:
    return False


def test_a_run_in_a_place_is_read_and_leaves_the_workspace_alone(project: Path) -> None:
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}
    trace = place(project).run(Prepared(COMMAND), never, seconds=60)
    assert (trace.ended, trace.exit_code, trace.stopped, trace.error) == (True, 0, "", "")
    assert trace.reached == 60
    assert trace.curves["loss"].values[0] > 0
    assert {p: p.read_bytes() for p in project.rglob("*") if p.is_file()} == before
    assert not (trace.folder / "copy").exists()
    assert (trace.folder / "output.log").read_text().startswith("step 1 loss")


def test_a_run_is_prepared_by_command_environment_and_files(project: Path) -> None:
    prepared = Prepared("cat data.csv config.txt; echo $RATE; ls", {"RATE": "7"},
                        {"data.csv": None, "config.txt": b"told\n"})
    told = (place(project).run(prepared, never, seconds=60).folder / "output.log").read_text()
    assert "told\n7\n" in told
    assert "data.csv\n" not in told.partition("7\n")[2]
    assert (project / "data.csv").exists()


def test_a_run_ends_as_soon_as_it_has_shown_enough(project: Path) -> None:
    (project / "train.py").write_text(FOREVER)
    trace = place(project).run(Prepared(COMMAND), lambda t: (t.reached or 0) >= 5, seconds=60)
    assert (trace.stopped, trace.ended, trace.exit_code) == ("decided", False, None)
    assert (trace.reached or 0) >= 5


def test_a_run_ends_with_its_time_and_an_error_is_named(project: Path) -> None:
    (project / "train.py").write_text(FOREVER)
    assert place(project).run(Prepared(COMMAND), never, seconds=1).stopped == "time"
    (project / "train.py").write_text("raise ValueError('shapes do not fit')")
    failed = place(project).run(Prepared(COMMAND), never, seconds=60)
    assert (failed.exit_code, failed.error) == (1, "ValueError: shapes do not fit")


def test_the_fingerprint_is_that_of_the_files_that_runs_read(project: Path) -> None:
    first = place(project).fingerprint
    (project / "scratch" / "debug").mkdir(parents=True)
    (project / "scratch" / "debug" / "X001.md").write_text("of an experiment")
    assert place(project).fingerprint == first
    (project / "data.csv").write_text("a,b\n1,3\n")
    assert place(project).fingerprint != first


@pytest.mark.slow
def test_a_change_that_removes_a_nan_is_proved(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = traindx(["experiment", str(project), "--run", COMMAND, "--change", "env:RATE=0.1", "--symptom",
                    "the loss is NaN", "--json"])
    told = json.loads(capsys.readouterr().out)
    shown = told["experiments"][0]
    assert (code, shown["id"], shown["rule"], shown["verdict"]) == (1, "X001", "X101", "removes")
    assert told["outcome"] == "nonfinite"
    assert [r["run"] for r in shown["runs"]] == ["control, own seed", "changed, own seed", "control, seed 1",
                                                "control, seed 2", "changed, seed 1"]
    folder = project / "scratch" / "debug" / "experiments"
    assert "| control, own seed | yes, step" in (folder / "X001.md").read_text()
    kinds = [json.loads(x)["kind"] for x in (folder / "journal.jsonl").read_text().splitlines()]
    assert kinds == ["experiment", *["run"] * 5, "verdict"]


def test_a_change_without_an_effect_ends_with_the_first_pair(project: Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    code = traindx(["experiment", str(project), "--run", COMMAND, "--change", "env:UNUSED=1", "--outcome", "nonfinite"])
    out = capsys.readouterr().out
    assert code == 0
    assert "X001 has no effect on the symptom: env:UNUSED=1" in out
    assert "2 runs" in out


@pytest.mark.slow
def test_a_symptom_that_does_not_come_decides_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = traindx(["experiment", str(project), "--run", f"RATE=0.1 {COMMAND}", "--change", "env:RATE=0.2",
                    "--outcome", "nonfinite"])
    assert code == 3
    assert "not reproduced: 3 controls" in capsys.readouterr().out


def request(project: Path, *changes: str, outcome: str = "nonfinite", **more: object) -> Request:
    return Request(project, COMMAND, tuple(map(parse_change, changes)), parse_outcome(outcome),
                   **more)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_level_is_compared_with_controls_of_other_seeds(project: Path) -> None:
    (project / "train.py").write_text(PROGRAM.replace('"30"', '"0.001"'))
    result = run_experiments(request(project, "env:RATE=0.1", outcome="level")).results[0]
    assert (result.verdict.word, result.verdict.better) == ("moves", True)
    assert len(set(result.verdict.controls)) == 3, "the placebo's seed reaches random.random()"


@pytest.mark.slow
def test_controls_are_run_once_and_changed_runs_again_unless_resumed(project: Path) -> None:
    def kept(**more: object) -> list[bool]:
        return [m.kept for m in run_experiments(request(project, "env:RATE=0.1", **more)).results[0].made]

    assert kept() == [False] * 5
    assert kept() == [True, False, True, True, False]
    assert kept(resume=True) == [True] * 5
    (project / "data.csv").write_text("a,b\n5,6\n")
    assert kept() == [False] * 5


@pytest.mark.slow
def test_what_was_cut_off_goes_on_under_its_own_id(project: Path) -> None:
    def cut_off(text: str) -> None:
        if "run 3" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiments(request(project, "env:RATE=0.1"), cut_off)
    result = run_experiments(request(project, "env:RATE=0.1", resume=True)).results[0]
    assert (result.id, [m.kept for m in result.made]) == ("X001", [True, True, False, False, False])


def test_a_spent_budget_names_the_command_that_goes_on(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text(FOREVER)
    code = traindx(["experiment", str(project), "--run", COMMAND, "--change", "env:RATE=1", "--outcome", "nonfinite",
                    "--budget", "3"])
    out = capsys.readouterr().out
    assert code == 3
    assert "where the time was up" in out
    assert "next: traindx experiment" in out
    assert "--resume" in out


HANGS = """
import os, time
for step in range(1, 31):
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step == 3 and "PASS" not in os.environ:
        time.sleep(600)
"""
LEAKS = """
import time
held = []
for step in range(1, 61):
    held.append(b"x" * 2_000_000)
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    time.sleep(0.03)
"""


@pytest.mark.slow
def test_a_run_that_stands_still_is_told_from_one_that_goes_on(project: Path) -> None:
    (project / "train.py").write_text(HANGS)
    result = run_experiments(request(project, "env:PASS=1", outcome="hang:3")).results[0]
    assert result.verdict.word == "removes"
    assert result.verdict.controls == (3.0, 3.0, 3.0)


def test_growing_memory_is_measured_against_the_steps(project: Path) -> None:
    (project / "train.py").write_text(LEAKS)
    trace = place(project).run(Prepared(COMMAND), never, seconds=60)
    growth = number(parse_outcome("memory-growth"), trace)
    assert growth is not None
    assert 1e6 < growth.value < 4e6
    assert (trace.peak_bytes or 0) > 100e6


@pytest.mark.parametrize(("words", "said"), [
    (["--change", "env:A=1"], "give the command as your consent"),
    (["--run", "true"], "nothing to change"),
    (["--run", "true", "--change", "no-such-change"], "no change is named"),
    (["--run", "true", "--change", "env:A=1", "--outcome", "sadness"], "names no outcome"),
    (["--run", " ", "--change", "env:A=1"], "the command is empty"),
    (["--run", "true", "--change", "patch:file=nowhere.diff"], "cannot be read"),
    (["--run", "true", "--change", "env:A=1", "--outcome", "exit", "--budget", "nan"], "a number of seconds"),
    (["--run", "true", "--change", "env:A=1", "--outcome", "exit", "--budget", "inf"], "a number of seconds"),
])
def test_bad_usage_is_one_line(project: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert traindx(["experiment", str(project), *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert not list(project.rglob("X0*"))


def test_a_folder_that_is_not_there_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert traindx(["experiment", "nowhere", "--run", "true", "--change", "env:A=1"]) == 2
    assert "no file or folder nowhere" in capsys.readouterr().err


def test_the_changes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert traindx(["experiment", "--list"]) == 0
    assert "learning-rate" in capsys.readouterr().out


def test_a_request_without_consent_to_anything_is_refused(project: Path) -> None:
    with pytest.raises(BadUsage, match="empty"):
        run_experiments(Request(project, "  ", (parse_change("env:A=1"),), Outcome("nonfinite")))


@pytest.mark.parametrize("rule", ["X101", "X102", "X103", "X104"])
def test_every_verdict_has_its_page(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert traindx(["explain", rule]) == 0
    assert rule in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_that_imports_the_folder_itself_acquits_nobody(project: Path) -> None:
    """Seen: the true cause had "no effect", because a script changed into the workspace before it started Python."""
    (project / "rate.py").write_text("RATE = 30.0\n")
    (project / "train.py").write_text(PROGRAM.replace("import math", "from rate import RATE\nimport math")
                                      .replace('float(os.environ.get("RATE", "30"))', "RATE"))
    (project / "run.sh").write_text(f"cd {project}\n{COMMAND}\n")
    (project / "cure.diff").write_text("--- a/rate.py\n+++ b/rate.py\n@@ -1 +1 @@\n-RATE = 30.0\n+RATE = 0.1\n")
    answers = {command: run_experiments(Request(project, command, (parse_change("patch:file=cure.diff"),),
                                                Outcome("nonfinite"), 60.0, out=project.parent / command.split()[0]))
               for command in ("sh run.sh", "python3 -c pass; " + COMMAND)}
    away, here = (a.results[0].verdict for a in answers.values())
    assert away.word == "inconclusive"
    assert "rate.py from the folder itself" in away.why
    assert here.word == "removes"


def test_what_experiments_write_into_the_folder_is_nothing_that_a_run_depends_on(project: Path) -> None:
    """Seen: with --out in the workspace nothing was ever kept from before."""
    scratch = project / "out" / "copies"
    before = ProtectedPlace(project, scratch).fingerprint
    scratch.mkdir(parents=True)
    (project / "out" / "X001.md").write_text("a table\n")
    assert ProtectedPlace(project, scratch).fingerprint == before
    (project / "data.csv").write_text("a,b\n3,4\n")
    assert ProtectedPlace(project, scratch).fingerprint != before


@pytest.mark.parametrize("folder", ["/", "/dev/null"])
def test_a_folder_of_the_system_is_no_project(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert traindx(["experiment", folder, "--run", "true", "--change", "env:A=1", "--outcome", "exit"]) == 2
    assert "no folder of a project" in capsys.readouterr().err


OWN = """--- a/train.py
+++ b/train.py
@@ -2,3 +2,3 @@
 import math, os, random
 random.seed(0)
-rate = float(os.environ.get("RATE", "30"))
+rate = 0.1
"""


@pytest.mark.parametrize("screen", [["--screen", "code"], ["--screen", "settings"], []])
def test_an_edit_of_ones_own_is_tried_in_the_copy_in_every_screen(project: Path, capsys: pytest.CaptureFixture[str],
                                                                 screen: list[str]) -> None:
    (project / "own.diff").write_text(OWN)
    code = traindx(["experiment", str(project), "--run", COMMAND, "--patch", str(project / "own.diff"), "--outcome",
                    "nonfinite", "--budget", "60", "--json", *screen])
    told = json.loads(capsys.readouterr().out)
    assert code == 1
    if screen:
        assert told["arms"][0]["change"].startswith("patch:file=")
        assert any(c.startswith("patch:") for c in told["stands_out"])
    else:
        assert told["experiments"][0]["verdict"] == "removes"
    assert (project / "train.py").read_text() == PROGRAM


def test_a_patch_that_does_not_fit_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "own.diff").write_text(OWN.replace("random.seed(0)", "random.seed(7)"))
    assert traindx(["experiment", str(project), "--run", COMMAND, "--patch", str(project / "own.diff"), "--outcome",
                    "nonfinite"]) == 2
    assert "does not fit" in capsys.readouterr().err
