"""A verification that the machine ends is no strike: the fix stays, and a resume verifies again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined, fix, replace_line

from traindx.at_terminal import describe
from traindx.hindrances import Change, hindrance
from traindx.model import Evidence, Verify
from traindx.session import confirm_fix, resume_session_sync, run_debug_session_sync
from traindx.typed_next import next_commands
from traindx.verify import NewRun, Outcome
from traindx_tools.finding import Bearing, Finding, Location, Severity

CHANGE = Change("train.py", TRAIN, FIXED)


def ended(folder: Path, text: str, code: int | None = 1, **how: bool) -> Outcome:
    (folder / "output.log").write_text(text)
    return Outcome(folder, code, **{"timed_out": False, "out_of_memory": False, "cancelled": False, **how}, seconds=1.0)


def judged(folder: Path, text: str, code: int | None = 1, *, change: Change = CHANGE, after: NewRun | None = None,
           mode: str = "lr.too-high", **how: bool) -> str | None:
    return hindrance(diagnosis(failure_mode=mode), Verify(command="x", timeout=30), ended(folder, text, code, **how),
                     after or NewRun(), [change], folder)


TRACE = 'Traceback (most recent call last):\n  File "/w/train.py", line {line}, in <module>\n    x\n{error}\n'


@pytest.mark.parametrize(("text", "code", "told"), [
    (TRACE.format(line=1, error="ModuleNotFoundError: No module named 'tensorboard'"), 1, "pip install tensorboard"),
    (TRACE.format(line=1, error="ModuleNotFoundError: No module named 'sklearn.metrics'"), 1, "scikit-learn"),
    (TRACE.format(line=1, error="ImportError: libcudnn.so.9: cannot open shared object file"), 1, "libcudnn"),
    (TRACE.format(line=1, error="ImportError: cannot import name 'Muon' from 'torch.optim' (x.py)"), 1, "has no Muon"),
    ("/bin/sh: 1: torchrun: not found\n", 127, "torchrun: not found"),
    ("python: can't open file '/w/go.py': [Errno 2] No such file or directory\n", 2, "no script /w/go.py"),
    ("usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --x 1\n", 2, "unrecognized arguments: --x 1"),
    (TRACE.format(line=9, error="OSError: [Errno 28] No space left on device"), 1, "no space left"),
    (TRACE.format(line=1, error="RuntimeError: Found no NVIDIA driver on your system."), 1, "CUDA device"),
    (TRACE.format(line=1, error="AssertionError: Torch not compiled with CUDA enabled"), 1, "CUDA device"),
    (TRACE.format(line=1, error="OSError: [Errno 98] Address already in use"), 1, "port"),
    (TRACE.format(line=1, error="ModuleNotFoundError: No module named 'wandb'") +
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n", 1, "pip install wandb"),
    ("loading\n", -9, "killed from outside"),
    ("loading\n", 137, "killed from outside"),
])
def test_the_machine_is_named_with_what_to_do(tmp_path: Path, text: str, code: int, told: str) -> None:
    assert told in (judged(tmp_path, text, code) or "")


def test_limits_before_the_first_step_say_nothing_of_the_fix(tmp_path: Path) -> None:
    assert "within 30 s" in (judged(tmp_path, "", None, timed_out=True) or "")
    assert "memory" in (judged(tmp_path, "", None, out_of_memory=True) or "")
    trained = NewRun(last_step=3.0, metrics={"loss": 1.0})
    assert judged(tmp_path, "", None, timed_out=True, after=trained) is None
    assert judged(tmp_path, "", None, timed_out=True, mode="hang.stalled") is None


@pytest.mark.parametrize("error", [
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied", "NameError: name 'lr' is not defined",
    "ModuleNotFoundError: No module named 'model'", "ImportError: cannot import name 'net' from 'model' (/w/model.py)",
])
def test_what_the_fix_has_to_answer_for_stays_a_failure(tmp_path: Path, error: str) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    assert judged(tmp_path, TRACE.format(line=1, error=error)) is None


def test_arguments_that_the_fix_changed_stay_a_failure(tmp_path: Path) -> None:
    text = "usage: train.py [-h]\ntrain.py: error: the following arguments are required: --lr\n"
    brought = Change("train.py", TRAIN, f'parser.add_argument("--lr", required=True)\n{TRAIN}')
    assert judged(tmp_path, text, 2, change=brought) is None
    assert "give the command" in (judged(tmp_path, text, 2) or "")


def test_an_import_that_the_fix_brought_stays_a_failure(tmp_path: Path) -> None:
    brought = Change("train.py", TRAIN, "import apex\n" + TRAIN)
    text = TRACE.format(line=9, error="ModuleNotFoundError: No module named 'apex'")
    assert judged(tmp_path, text, change=brought) is None
    assert judged(tmp_path, text, change=Change("train.py", brought.after, brought.after)) is not None
    moved = Change("train.py", TRAIN, TRAIN.replace("learning_rate = 10.0", "learning_rate = load()"))
    cuda = "RuntimeError: No CUDA GPUs are available"
    assert judged(tmp_path, TRACE.format(line=4, error=cuda), change=moved) is None
    assert judged(tmp_path, TRACE.format(line=3, error=cuda), change=moved) is not None


def test_the_error_that_was_diagnosed_is_no_accident_when_it_comes_again(tmp_path: Path) -> None:
    text = TRACE.format(line=1, error="OSError: [Errno 28] No space left on device")
    found = Finding(rule="L522", title="disk", source="log", severity=Severity.HIGH, bearing=Bearing.CAUSE,
                    statement="the disk is full", where=Location(step=0))
    cited = Evidence(id="E1", statement="the disk is full", rule="L522", strength="ran", bearing="cause",
                     finding=found.to_json())
    about_it = diagnosis(evidence=(cited,))
    how, run = Verify(command="x"), ended(tmp_path, text)
    assert hindrance(about_it, how, run, NewRun((found,)), [CHANGE], tmp_path) is None
    assert hindrance(diagnosis(), how, run, NewRun((found,)), [CHANGE], tmp_path) is not None


def test_a_missing_package_is_no_strike_and_a_resume_verifies_again(workspace: Path) -> None:
    check = ("test -e installed || { echo \"ModuleNotFoundError: No module named 'tensorboard'\"; exit 1; }; "
             "grep -q 'rate = 0.1' train.py")
    result = run_debug_session_sync("the loss explodes", workspace, verify=check, allow_run=True, report=False,
                                    investigator=Scripted([diagnosis()]), approve=approve(), examine=examined)
    assert (result.status, result.phase) == ("awaiting_verification", "verify")
    assert result.next_step.startswith("pip install tensorboard, then traindx resume ")
    assert "no strike" in result.reason
    assert not (workspace / "scratch/debug/strikes.jsonl").exists()
    assert (workspace / "train.py").read_text() == FIXED
    assert any("pip install tensorboard" in row for row in describe(result))
    assert any(f"resume {result.session} --run" in c for c in next_commands(result))
    again = resume_session_sync(result.folder, investigator=Scripted([diagnosis()]), examine=examined, report=False)
    assert again.status == "awaiting_verification"
    (workspace / "installed").touch()
    fixed = resume_session_sync(result.folder, investigator=Scripted([diagnosis()]), examine=examined, report=False)
    assert fixed.status == "fixed"


def test_a_verification_that_could_not_be_made_can_be_settled_by_hand(workspace: Path) -> None:
    result = run_debug_session_sync("the loss explodes", workspace, verify="no-such-program", allow_run=True,
                                    report=False, investigator=Scripted([diagnosis()]), approve=approve(),
                                    examine=examined)
    assert result.status == "awaiting_verification"
    assert confirm_fix(result.folder, passed=True, comment="it trains").phase == "retrospective"


def test_a_fix_that_imports_what_is_not_there_is_a_strike(workspace: Path) -> None:
    edit = replace_line("import apex_like_thing")
    result = run_debug_session_sync("the loss explodes", workspace, verify=f"{sys.executable} train.py", allow_run=True,
                                    report=False, investigator=Scripted([diagnosis(fix(edit))]), approve=None,
                                    examine=examined)
    assert result.diagnosis is not None
    after = resume_session_sync(result.folder, approve=approve(), investigator=Scripted([diagnosis(fix(edit))]),
                                examine=examined, report=False)
    assert after.attempts[0].verification is not None
    assert not after.attempts[0].verification.passed
    assert after.attempts[0].reverted
