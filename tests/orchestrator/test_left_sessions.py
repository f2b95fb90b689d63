"""Sessions whose process is gone: what they are called, what stands changed, and the way back."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from traindx.group import traindx
from traindx.model import Decision
from traindx.session import decide, list_sessions, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_folder import SessionFolder
from traindx.undoing import undo_fix

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"

KILLED = """\
import os, signal, sys
from traindx.session import run_debug_session_sync

def hear(notice):
    if notice.kind == "phase" and notice.text == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

approve = lambda d: __import__("traindx.model").model.Decision.approve(d, "A")
run_debug_session_sync("loss is nan", sys.argv[1], report=False, hear=hear, approve=approve, allow_run=True,
                       verify="python train.py --steps 50")
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    monkeypatch.chdir(folder)
    return folder


def killed(work: Path, phase: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(work), phase], capture_output=True, timeout=100,
                          check=False)
    assert done.returncode == -9, done.stderr


def listed(*arguments: str) -> str:
    return CliRunner().invoke(traindx, ["sessions", *arguments]).stdout


@pytest.mark.slow
def test_a_killed_session_is_interrupted_and_says_how_to_go_on(work: Path) -> None:
    killed(work, "diagnosing")
    [found] = list_sessions(work)
    assert found.status == "interrupted"
    assert found.reason.startswith("diagnosing, and no process drives the session any more")
    shown = listed()
    assert "  interrupted\n" in shown
    assert f"    traindx resume {found.session}\n" in shown
    assert resume_session_sync(found.folder, report=False).status == "awaiting_approval"


@pytest.mark.slow
def test_a_session_that_is_driven_is_running(work: Path) -> None:
    killed(work, "diagnosing")
    [found] = list_sessions(work)
    with SessionFolder(Path(found.folder)).locked():
        assert read_result(found.folder).status == "running"
    assert read_result(found.folder).status == "interrupted"


@pytest.mark.slow
def test_one_that_was_killed_before_its_verification_says_what_stands_changed(work: Path) -> None:
    before = (work / "train.py").read_bytes()
    killed(work, "verifying the fix")
    [found] = list_sessions(work)
    assert found.status == "interrupted"
    assert (work / "train.py").read_bytes() != before
    assert "the fix stands in train.py:20 and is not verified" in found.reason
    assert f"traindx resume {found.session} --undo takes the change back" in found.next_step
    assert f"    traindx resume {found.session} --undo\n" in listed()
    undone = undo_fix(found.folder, comment="taken back")
    assert (work / "train.py").read_bytes() == before
    assert (undone.status, undone.strikes, undone.digest) == ("awaiting_approval", 0, found.digest)


def test_an_approval_that_nobody_went_on_with_is_not_called_running(work: Path) -> None:
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decided = decide(waiting.folder, Decision.approve(waiting.diagnosis, "A"))
    assert (decided.status, decided.reason) == ("answered", "user approved option A; nothing is changed yet")


@pytest.mark.slow
def test_a_row_is_no_longer_than_the_page(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_debug_session_sync("loss is nan", work, report=False)
    killed(work, "diagnosing")
    monkeypatch.setenv("COLUMNS", "80")
    rows = listed().splitlines()
    assert all(len(row) <= 80 for row in rows)
    told = " ".join(listed().split())
    assert "which gives -inf and then NaN (train.py:46" in told  # a cause is told to its end
    assert "nobody has gone on with it yet" in told


def test_looking_makes_no_lock(work: Path) -> None:
    folder = SessionFolder(work / "scratch" / "debug" / "none")
    folder.path.mkdir(parents=True)
    assert not folder.is_driven
    assert not (folder.path / ".lock").exists()
