"""A log that is older than a verified fix of its folder is told to be."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from scripted import Scripted, approve, diagnosis, examined

from traindx.diagnose import diagnose
from traindx.session import run_debug_session_sync
from traindx.session_result import SessionResult

EARLIER, LATER = -600.0, 600.0
LOG = "".join(f"step {n} loss {2.0 - n / 100:.4f}\n" for n in range(60))


def log(workspace: Path, age: float, name: str = "log.txt") -> Path:
    path = workspace / name
    path.write_text(LOG)
    os.utime(path, (time.time() + age,) * 2)
    return path


def session(workspace: Path, verify: str = "grep -q 'learning_rate = 0.1' train.py") -> SessionResult:
    return run_debug_session_sync("the loss explodes", workspace, investigator=Scripted([diagnosis()]), verify=verify,
                                  allow_run=True, examine=examined, report=False, approve=approve())


def told(workspace: Path) -> list[str]:
    return [n for n in diagnose([workspace]).notes if "was written before the fix" in n]


def test_an_old_log_is_told_with_the_session_and_the_place_of_its_fix(workspace: Path) -> None:
    log(workspace, EARLIER)
    result = session(workspace)
    assert result.status == "fixed"
    (note,) = told(workspace)
    assert note.startswith(f"log.txt was written before the fix that session {result.session} made and "
                           "verified in train.py:4 (Set the learning rate to a stable value)")
    page = " ".join(diagnose([workspace]).terminal(width=200).split())
    assert f"log.txt was written before the fix that session {result.session}" in page
    log(workspace, EARLIER - 60, "older.txt")
    assert told(workspace)[0].startswith("all that was read (log.txt last) was written before")


def test_a_log_of_after_the_fix_says_nothing(workspace: Path) -> None:
    log(workspace, EARLIER)
    session(workspace)
    log(workspace, LATER)
    assert not told(workspace)


def test_an_old_log_beside_a_new_one_is_not_judged(workspace: Path) -> None:
    """The verification wrote the metrics anew and left the log of the run that failed where it was."""
    (workspace / "log.txt").write_text("".join(f"step {n} loss {2.0 - n / 100:.4f}\n" for n in range(40))
                                       + "".join(f"step {n} loss nan\n" for n in range(40, 60)))
    os.utime(workspace / "log.txt", (time.time() + EARLIER,) * 2)
    session(workspace)
    new = log(workspace, LATER, "new.txt")
    report = diagnose([workspace])
    assert not any(f.rule == "L101" for f in report.findings), report.findings
    (note,) = told(workspace)
    assert note.startswith("log.txt was written before the fix")
    assert "Not judged beside" in note
    both = diagnose([workspace / "log.txt", new])  # named one by one: the person's choice
    assert any(f.rule == "L101" for f in both.findings)


@pytest.mark.parametrize("verify", ["false", "grep -q nothing train.py"])
def test_a_fix_that_failed_and_was_taken_back_says_nothing(workspace: Path, verify: str) -> None:
    log(workspace, EARLIER)
    session(workspace, verify)
    assert not told(workspace)


def test_a_folder_without_sessions_or_with_a_broken_journal_says_nothing(workspace: Path) -> None:
    log(workspace, EARLIER)
    assert not told(workspace)
    result = session(workspace)
    journal = Path(result.folder) / "journal.jsonl"
    journal.write_text(journal.read_text()[:200] + "\n{broken\n")
    assert not told(workspace)
