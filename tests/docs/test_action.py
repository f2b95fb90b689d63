"""action.yml: its steps do on a bare runner what they say, whatever stands in their inputs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {s["name"]: s for s in ACTION["runs"]["steps"]}
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def step(name: str, runner: Path, work: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Runs a step as GitHub does, with the installed traindx where its install step would have put it."""
    (runner / "traindx" / "bin").mkdir(parents=True, exist_ok=True)
    tool = runner / "traindx" / "bin" / "traindx"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m traindx "$@"\n')
    tool.chmod(0o755)
    env = {**os.environ, "RUNNER_TEMP": str(runner), "GITHUB_OUTPUT": str(runner / "out"),
           "GITHUB_STEP_SUMMARY": str(runner / "summary"), **given}
    return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]], cwd=work,
                          env=env, capture_output=True, text=True, timeout=110, check=False)


def test_no_input_is_pasted_into_a_script_and_every_one_is_used() -> None:
    assert not [s["name"] for s in STEPS.values() if "${{" in s["run"]]
    told = str([(s.get("env"), s.get("if")) for s in STEPS.values()])
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in told] == []


@pytest.mark.slow
def test_a_run_that_failed_is_diagnosed_and_its_report_is_kept(tmp_path: Path) -> None:
    work = shutil.copytree(ROOT / "examples" / "numpy-lr", tmp_path / "work")
    done = step("diagnose", tmp_path / "runner", work, LOG=".", SYMPTOM='NaN "$(touch pwned)"; touch pwned')
    assert done.returncode == 0, done.stderr
    out = dict(row.split("=", 1) for row in (tmp_path / "runner" / "out").read_text().splitlines())
    assert out["status"] == "diagnosis_complete"
    assert (Path(out["report"]) / "report.html").is_file()
    summary = (tmp_path / "runner" / "summary").read_text()
    assert summary.startswith("    Cause found")
    assert not (work / "pwned").exists()


def test_a_log_that_is_not_there_fails_the_step(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    done = step("diagnose", tmp_path / "runner", tmp_path / "work", LOG="gone.log", SYMPTOM="")
    assert done.returncode == 2
    assert "gone.log" in done.stderr
    assert "gone.log" in (tmp_path / "runner" / "summary").read_text()
    assert done.stdout.startswith("::error title=traindx diagnose::")


@pytest.mark.slow
def test_the_audit_tells_beside_the_lines_and_fails_where_something_is_wrong(tmp_path: Path) -> None:
    faulty = step("audit", tmp_path / "runner", ROOT / "examples" / "torch-zero-grad", PATHS="train.py", BASE="")
    assert faulty.returncode == 1
    assert faulty.stdout.startswith("::error ")
    assert "file=train.py,line=47" in faulty.stdout
    several = step("audit", tmp_path / "runner", ROOT / "examples", PATHS="healthy\ntorch-zero-grad\n", BASE="")
    assert several.returncode == 1
    sound = step("audit", tmp_path / "runner", ROOT / "examples" / "healthy", PATHS=".", BASE="")
    assert sound.returncode == 0, sound.stdout
