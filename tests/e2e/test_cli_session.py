"""Sessions as a user drives them: by commands, over several processes, and at a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
VERIFY = f"{sys.executable} train.py"


def traindx(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "traindx", *arguments], cwd=cwd, capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, timeout=100)


def started(work: Path, *more: str) -> dict[str, Any]:
    done = traindx("debug", ".", "--symptom", "loss is nan", "--verify", VERIFY, "--json", *more, cwd=work)
    assert done.returncode == 1, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))


@pytest.mark.slow
def test_a_session_waits_is_listed_shown_approved_and_fixed(work: Path) -> None:
    waiting = started(work)
    assert waiting["status"] == "awaiting_approval"
    listed = json.loads(traindx("sessions", "--json", cwd=work).stdout)
    assert [s["session"] for s in listed] == [waiting["session"]]
    shown = traindx("show", waiting["session"], cwd=work)
    assert "Diagnosis (Gate 4)" in shown.stdout
    assert waiting["digest"] in shown.stdout
    done = traindx("approve", waiting["session"], "--option", "A", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "before" in done.stdout
    assert json.loads(traindx("show", waiting["session"], "--json", cwd=work).stdout)["status"] == "fixed"


@pytest.mark.slow
def test_what_a_waiting_session_prints_can_be_typed_from_where_it_was_printed(work: Path) -> None:
    done = traindx("debug", "work", "--symptom", "loss is nan", "--verify", VERIFY, cwd=work.parent)
    assert "cause: The loss takes the logarithm" in done.stdout
    said = next(row.split() for row in done.stdout.splitlines() if "traindx approve" in row)
    assert said[0] == "traindx"
    approved = traindx(*said[1:], cwd=work.parent)
    assert approved.returncode == 0, approved.stderr
    assert ": fixed" in approved.stdout
    assert "fixed" in traindx("sessions", "work", cwd=work.parent).stdout


@pytest.mark.slow
def test_an_approval_of_another_diagnosis_is_refused(work: Path) -> None:
    waiting = started(work)
    done = traindx("approve", waiting["session"], "--option", "A", "--digest", "0" * 64, cwd=work)
    assert done.returncode == 2
    assert "has changed since you read it" in done.stderr
    assert (work / "train.py").read_text() == (EXAMPLES / "numpy-lr" / "train.py").read_text()


@pytest.mark.slow
def test_a_rejected_diagnosis_is_not_applied(work: Path) -> None:
    waiting = started(work)
    done = traindx("reject", waiting["session"], "--reason", "the clamp is right", cwd=work)
    assert done.returncode == 1
    assert "rejected" in done.stdout
    again = traindx("approve", waiting["session"], "--option", "A", cwd=work)
    assert again.returncode == 2
    assert (work / "train.py").read_text() == (EXAMPLES / "numpy-lr" / "train.py").read_text()


@pytest.mark.slow
def test_what_does_not_exist_is_said_in_one_line(work: Path) -> None:
    for arguments in (("show", "nothing"), ("approve", "nothing", "--option", "A"), ("resume", "nothing"),
                      ("debug", "nowhere")):
        done = traindx(*arguments, cwd=work)
        assert done.returncode == 2
        assert done.stderr.startswith("traindx: ")
        assert "Traceback" not in done.stderr


CTRL_C = "\x03"


def at_a_terminal(arguments: list[str], cwd: Path, answers: list[tuple[str, str]]) -> tuple[int, str]:
    """Runs traindx on a pseudo-terminal; each answer is typed when its words have appeared.

    Ctrl-C is pressed again after a while without a word, as a person does: a signal that comes between the prompt and
    the reading of it is noted by Python only when a key follows.
    """
    child, master = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests are started in the background
        os.chdir(cwd)
        os.execv(sys.executable, [sys.executable, "-m", "traindx", *arguments])
    said, waiting, deadline, quiet, typed = "", list(answers), time.monotonic() + 500, 0, ""
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 1.0)
        quiet = 0 if ready else quiet + 1
        if typed == CTRL_C and quiet > 5:
            os.write(master, CTRL_C.encode())
            quiet = 0
        if ready:
            try:
                block = os.read(master, 65536)
            except OSError:
                break
            said += block.decode(errors="replace")
        if waiting and waiting[0][0] in said:
            typed = waiting.pop(0)[1]
            os.write(master, typed.encode() if typed == CTRL_C else f"{typed}\n".encode())
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


@pytest.mark.slow
def test_at_a_terminal_the_person_is_asked_and_the_notes_are_kept_with_consent(work: Path) -> None:
    code, said = at_a_terminal(["debug", ".", "--symptom", "loss is nan", "--verify", VERIFY], work,
                               [("Your decision", "A"), ("Add what was learned", "y")])
    assert code == 0, said
    assert "Does this match what you see?" in said
    assert (work / "MEMORY.md").is_file()
    assert (work / ".agents" / "knowledge").is_dir()


@pytest.mark.slow
def test_at_a_terminal_later_leaves_the_session_waiting(work: Path) -> None:
    code, said = at_a_terminal(["debug", ".", "--symptom", "loss is nan", "--verify", VERIFY], work,
                               [("Your decision", "l")])
    assert code == 1, said
    assert "traindx approve" in said
    assert not (work / "MEMORY.md").exists()


@pytest.mark.slow
def test_ctrl_c_once_at_the_gate_leaves_the_session_waiting_and_says_how_to_go_on(work: Path) -> None:
    code, said = at_a_terminal(["debug", ".", "--symptom", "loss is nan", "--verify", VERIFY], work,
                               [("Your decision", CTRL_C)])
    session = next(p.name for p in (work / "scratch" / "debug").iterdir() if (p / "journal.jsonl").is_file())
    assert code == 130, said
    assert f"Session {session} waits. From another shell: traindx approve {session} --option A" in said
    after = said[said.index("Your decision"):]
    assert f"traindx approve {session} --option A" in after
    assert "Traceback" not in said
    assert json.loads(traindx("show", session, "--json", cwd=work).stdout)["status"] == "awaiting_approval"


@pytest.mark.slow
def test_ctrl_c_once_while_it_works_is_recorded_and_says_how_to_go_on(work: Path) -> None:
    endless = f"{sys.executable} -c 'import time; print(1, flush=True); time.sleep(900)'"
    code, said = at_a_terminal(["debug", ".", "--symptom", "loss is nan", "--verify", endless], work,
                               [("Your decision", "A"), ("verifying", CTRL_C)])
    session = next(p.name for p in (work / "scratch" / "debug").iterdir() if (p / "journal.jsonl").is_file())
    assert code == 130, said
    assert f"traindx: interrupted; session {session} is kept as it stands; the fix stands in train.py:20 " in said
    assert f"; to go on: traindx resume {session}" in said
    assert json.loads(traindx("show", session, "--json", cwd=work).stdout)["status"] == "interrupted"
