"""An applied fix that nobody judged is taken back: no strike, nothing against its cause, the diagnosis waits again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined

import traindx
from traindx.group import traindx as command_line
from traindx.journal import Journal
from traindx.model import Decision
from traindx.patching import PatchRefused
from traindx.session import confirm_fix, decide, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_folder import SessionFolder
from traindx.session_result import SessionResult
from traindx.strikes import Ledger
from traindx.tried_diffs import TriedDiffs
from traindx.undoing import NothingToUndo, undo_fix


def applied(workspace: Path, **options: object) -> SessionResult:
    """A session whose fix stands in the files and is not verified."""
    found = run_debug_session_sync("x", workspace, investigator=Scripted([diagnosis()]), examine=examined, report=False,
                                   approve=approve(), **options)
    assert (workspace / "train.py").read_text() == FIXED
    return found


def test_the_files_are_as_before_and_nothing_is_held_against_the_cause(workspace: Path) -> None:
    found = applied(workspace)
    assert found.status == "awaiting_verification"
    assert (found.standing, found.changed) == (("train.py:4",), ())
    assert any(c.startswith(f"traindx resume {found.session} --undo") for c in found.commands)
    back = undo_fix(found.folder, by="ann", comment="it was cut off")
    assert (workspace / "train.py").read_text() == TRAIN
    assert back.standing == ()
    assert (back.status, back.strikes, back.digest) == ("awaiting_approval", 0, found.digest)
    assert [(a.reverted, a.undone, a.verification) for a in back.attempts] == [(True, True, None)]
    assert Ledger(workspace).strikes(diagnosis().approach, diagnosis().options[0]) == ()
    assert TriedDiffs(workspace).entries() == ()


def test_the_same_diagnosis_can_be_approved_again(workspace: Path) -> None:
    back = undo_fix(applied(workspace).folder)
    assert back.diagnosis is not None
    decide(back.folder, Decision.approve(back.diagnosis, "A"))
    done = resume_session_sync(back.folder, investigator=Scripted([]), examine=examined, report=False,
                               verify="grep -q 'learning_rate = 0.1' train.py", allow_run=True)
    assert done.status == "fixed", done.reason
    assert [a.undone for a in done.attempts] == [True, False]


def test_lines_that_were_changed_since_are_left_alone_and_named(workspace: Path) -> None:
    found = applied(workspace)
    mine = FIXED.replace("learning_rate = 0.1", "learning_rate = 0.2")
    (workspace / "train.py").write_text(mine)
    with pytest.raises(PatchRefused, match=r"train\.py"):
        undo_fix(found.folder)
    assert (workspace / "train.py").read_text() == mine
    assert read_result(found.folder).status == "awaiting_verification"


def test_where_no_fix_stands_there_is_nothing_to_undo(workspace: Path) -> None:
    waiting = run_debug_session_sync("x", workspace, investigator=Scripted([diagnosis()]), examine=examined,
                                     report=False)
    with pytest.raises(NothingToUndo, match="no fix in your files"):
        undo_fix(waiting.folder)
    settled = applied(workspace)
    confirm_fix(settled.folder, passed=True, comment="seen")
    with pytest.raises(NothingToUndo):
        undo_fix(settled.folder)


def test_an_undo_that_was_killed_between_is_ended_and_the_old_code_is_not_verified(workspace: Path) -> None:
    found = applied(workspace)
    with Journal(SessionFolder(Path(found.folder)).journal) as journal:
        journal.begin("undo-1", files=[])
    (workspace / "train.py").write_text(TRAIN)
    after = resume_session_sync(found.folder, investigator=Scripted([]), examine=examined, report=False,
                                verify="touch was_run", allow_run=True)
    assert after.status == "awaiting_approval"
    assert not (workspace / "was_run").exists()


def test_the_command_takes_it_back_and_asks_for_no_judgement(workspace: Path) -> None:
    found = applied(workspace)
    refused = CliRunner().invoke(command_line, ["resume", found.folder, "--undo", "--failed"])
    assert "give it alone" in str(refused.exception)
    done = CliRunner().invoke(command_line, ["resume", found.folder, "--undo"])
    assert "undone" in done.stdout
    assert "approve" in done.stdout
    assert (workspace / "train.py").read_text() == TRAIN
    assert traindx.undo_fix is undo_fix
