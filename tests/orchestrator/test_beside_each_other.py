"""Two sessions of one job: the second says that there is a first, and does not apply its fix over that one's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from filelock import FileLock
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined

from traindx import beside
from traindx.model import Decision, NeedsData
from traindx.session import confirm_fix, decide, read_result, resume_session_sync, run_debug_session_sync
from traindx.session_folder import SessionFolder


def start(workspace: Path, **options: object):
    return run_debug_session_sync("x", workspace, investigator=options.pop("investigator", Scripted([diagnosis()])),
                                  examine=examined, report=False, **options)


def go_on(folder: str):
    return resume_session_sync(folder, investigator=Scripted([diagnosis()]), examine=examined, report=False)


def test_a_session_alone_says_nothing(workspace: Path) -> None:
    assert start(workspace).notes == ()
    (workspace / "scratch/debug/broken").mkdir()
    (workspace / "scratch/debug/broken/journal.jsonl").write_text("no journal\n")
    assert len(start(workspace).notes) == 1, "of a damaged session nothing is said"


def test_the_second_says_that_the_first_is_at_work(workspace: Path) -> None:
    heard: list[str] = []
    inside: list[object] = []

    def second(case: object) -> None:
        inside.append(start(workspace, hear=lambda n: heard.append(n.text) if n.kind == "said" else None))

    class First(Scripted):
        async def gather(self, case):
            await asyncio.to_thread(second, case)
            return await super().gather(case)

    first = start(workspace, investigator=First([diagnosis()]))
    said = (f"session {first.session} of this folder is at work as well (gathering evidence): what it finds is not "
            "known here, and of two fixes only the first is applied")
    assert heard == [said]
    assert inside[0].notes == (f"beside it: {said}",)


def test_the_second_says_that_the_first_waits_and_does_not_apply_over_it(workspace: Path) -> None:
    first = start(workspace)
    second = start(workspace)
    assert second.notes == (f"beside it: session {first.session} of this folder waits with a diagnosis for a decision: "
                            f"`traindx show {first.session}`",)
    decide(first.folder, Decision.approve(first.diagnosis, "A"))
    assert go_on(first.folder).status == "awaiting_verification"
    decide(second.folder, Decision.approve(second.diagnosis, "A"))
    stopped = go_on(second.folder)
    assert stopped.status == "interrupted"
    assert f"one fix at a time: session {first.session} has one in this workspace" in stopped.reason
    assert f"`traindx resume {first.session} --undo` takes it back" in stopped.reason
    assert any("has a fix in train.py:4 that is not settled" in n for n in stopped.notes)
    assert (workspace / "train.py").read_text() == FIXED, "that of the first"
    confirm_fix(first.folder, passed=False, comment="no")
    go_on(first.folder)
    assert (workspace / "train.py").read_text() == TRAIN


def test_two_that_apply_at_the_same_moment_do_not_both(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "SECONDS", 0.0)
    first = start(workspace)
    with FileLock(str(workspace / "scratch/debug" / beside.LOCK)):
        stopped = start(workspace, approve=approve())
    assert "another session puts its change into this workspace at the moment" in stopped.reason
    assert (workspace / "train.py").read_text() == TRAIN
    assert not beside.under_test(SessionFolder(Path(first.folder)))
    assert go_on(stopped.folder).status == "awaiting_verification"


def test_a_fix_that_another_session_verified_meanwhile_is_named_with_all_files(workspace: Path) -> None:
    """Seen: halted for metrics.csv alone, which the other session's verification wrote, and no word of train.py."""
    command = "grep -q 'learning_rate = 0.1' train.py && echo 1 > metrics.csv"
    first, second = (start(workspace, verify=command, allow_run=True) for _ in range(2))
    for waiting in (first, second):
        assert waiting.diagnosis is not None
        decide(waiting.folder, approve()(waiting.diagnosis))
    done = resume_session_sync(first.folder, investigator=Scripted([]), examine=examined, report=False)
    assert done.status == "fixed", done.reason
    halted = resume_session_sync(second.folder, investigator=Scripted([]), examine=examined, report=False)
    assert (halted.status, set(halted.changed)) == ("halted", {"train.py", "metrics.csv"})
    assert f"session {first.session} of this folder changed train.py:4" in halted.reason
    assert "nothing is left to do here" in halted.next_step
    seen = Scripted([NeedsData(reason="more")])
    after = resume_session_sync(second.folder, investigator=seen, examine=examined, report=False, accept_changes=True)
    assert after.status == "needs_more_data"
    assert any(f.startswith(f"meanwhile session {first.session}") for f in seen.seen[0].feedback)


def test_what_is_said_of_the_others_is_as_they_stand_now(workspace: Path) -> None:
    first = start(workspace)
    second = start(workspace)
    assert any(first.session in note for note in read_result(second.folder).notes)
    decide(first.folder, Decision(verdict="reject", diagnosis_digest=first.digest or "", comment="no"))
    assert not any(first.session in note for note in read_result(second.folder).notes)
