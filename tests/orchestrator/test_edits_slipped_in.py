"""Less obvious ways for an edit to come between a diagnosis and its verdict; none of them is taken for the fix."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from killed_at import killed
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined, fix, replace_line

from traindx import patching
from traindx.investigators.base import Case
from traindx.investigators.observed_run import _folder, _marked
from traindx.investigators.offline import _state
from traindx.model import Decision, Symptom, Verify
from traindx.session import confirm_fix, decide, list_sessions, resume_session_sync, run_debug_session_sync
from traindx.session_result import SessionResult

GOOD = "grep -q 'learning_rate = 0.1' train.py"


def start(workspace: Path, *conclusions: object, **options: object) -> SessionResult:
    terms = {"verify": GOOD, "allow_run": True, "examine": examined, "report": False}
    return run_debug_session_sync("x", workspace, investigator=Scripted(list(conclusions) or [diagnosis()]),
                                  **{**terms, **options})


def go_on(found: SessionResult | str, *conclusions: object, **options: object) -> SessionResult:
    folder = found if isinstance(found, str) else found.folder
    return resume_session_sync(folder, investigator=Scripted(list(conclusions) or [diagnosis()]),
                               **{"examine": examined, "report": False, **options})


def approved(workspace: Path, *conclusions: object) -> SessionResult:
    waiting = start(workspace, *conclusions)
    assert waiting.diagnosis is not None
    return decide(waiting.folder, approve()(waiting.diagnosis))


def unseen(path: Path, text: str) -> None:
    """Another content of the same size, with the old time of change."""
    before = path.stat()
    assert len(text) == before.st_size
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_code_behind_a_link_that_leads_out(workspace: Path) -> None:
    shared = workspace.parent / "shared.py"
    shared.write_text("rate = 1\n")
    (workspace / "shared.py").symlink_to(shared)
    found = approved(workspace)
    shared.write_text("rate = 2\n")
    after = go_on(found)
    assert (after.status, after.changed) == ("halted", ("shared.py",))


@pytest.mark.parametrize("name", ["train.py", "sub/helper.py"])
def test_code_that_git_ignores_with_size_and_time_as_before(tmp_path: Path, name: str) -> None:
    work = tmp_path / "repo/experiments"
    (work / "sub").mkdir(parents=True)
    (work / "train.py").write_text(TRAIN)
    (work / "sub/helper.py").write_text("value = 1\n")
    (tmp_path / "repo/.gitignore").write_text("experiments/\n")
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    found = approved(work)
    unseen(work / name, (work / name).read_text().replace("range(200)", "range(300)").replace("value = 1", "value = 2"))
    after = go_on(found)
    assert after.status in ("halted", "awaiting_approval")
    assert name in after.reason
    assert "learning_rate = 10.0" in (work / "train.py").read_text()


@pytest.mark.slow
def test_the_record_of_the_files_is_gone(workspace: Path) -> None:
    folder = killed(workspace, "applied", GOOD)
    (Path(folder) / "workspace.json").unlink()
    (workspace / "train.py").write_text(FIXED.replace("range(200)", "range(300)"))
    halted = go_on(folder)
    assert (halted.status, halted.changed) == ("halted", ("train.py",))
    assert any("workspace.json" in n for n in halted.notes)


def test_a_fix_of_two_files_that_was_cut_between_them(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = diagnosis(fix(replace_line("learning_rate = 0.1"),
                         replace_line("value = 9", line=1, old="value = 1", path="other.py")))
    real, wrote = patching._write, []

    def once(*given: object) -> None:
        if wrote:
            raise KeyboardInterrupt
        wrote.append(given)
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(patching, "_write", once)
    with pytest.raises(KeyboardInterrupt):
        start(workspace, both, approve=approve())
    monkeypatch.undo()
    [found] = list_sessions(workspace)
    assert (workspace / "train.py").read_text() == FIXED
    (workspace / "other.py").write_text("value = 1\nmine = 1\n")
    halted = go_on(found, both)
    assert (halted.status, halted.changed) == ("halted", ("other.py",))
    assert (workspace / "train.py").read_text() == TRAIN
    assert (workspace / "other.py").read_text() == "value = 1\nmine = 1\n"
    again = go_on(halted, both, accept_changes=True)
    assert again.status == "awaiting_approval"
    assert (workspace / "train.py").read_text() == TRAIN


def test_an_edit_while_the_unfixed_code_runs(workspace: Path) -> None:
    """The command of the copy stands in for the person: it reaches out of the copy."""
    there = workspace / "other.py"
    command = f"case $PWD in *baselines*) echo '# mine' >> ../../../../../../other.py;; esac; {GOOD}"
    after = start(workspace, approve=approve(), verify={"command": command, "sandbox": False})
    assert (after.status, after.changed) == ("halted", ("other.py",)), after.reason
    assert there.read_text().endswith("# mine\n")


def test_an_edit_between_two_of_three_runs(workspace: Path) -> None:
    counted = f"echo >> ../runs; [ $(wc -l < ../runs) != 2 ] || echo '# mine' >> other.py; {GOOD}"
    verify = Verify(command=counted, runs=3, baseline=False, writable=("..",))
    after = start(workspace, approve=approve(), verify=verify)
    assert (after.status, after.changed) == ("halted", ("other.py",)), after.reason
    assert (workspace.parent / "runs").read_text().count("\n") == 2


def test_a_file_that_was_renamed_is_named_at_both_places(workspace: Path) -> None:
    found = approved(workspace)
    (workspace / "other.py").rename(workspace / "renamed.py")
    assert go_on(found).changed == ("other.py", "renamed.py")


def test_an_edit_before_a_revision_is_named(workspace: Path) -> None:
    waiting = start(workspace)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.revise(waiting.diagnosis, "I changed it"))
    (workspace / "train.py").write_text(TRAIN.replace("range(200)", "range(300)"))
    halted = go_on(waiting)
    assert (halted.status, halted.changed) == ("halted", ("train.py",))
    again = go_on(halted, accept_changes=True)
    assert again.status == "awaiting_approval"
    assert any("accepted" in n and "train.py" in n for n in again.notes)


@pytest.mark.slow
def test_another_edit_while_it_is_halted_is_not_accepted_with_the_first(workspace: Path) -> None:
    folder = killed(workspace, "applied", GOOD)
    (workspace / "other.py").write_text("value = 2\n")
    halted = go_on(folder)
    (workspace / "train.py").write_text(FIXED.replace("range(200)", "range(300)"))
    again = go_on(halted, accept_changes=True)
    assert (again.status, again.changed) == ("halted", ("train.py",))


def test_an_accepted_edit_is_kept_when_the_fix_is_taken_back(workspace: Path) -> None:
    wrong = diagnosis(fix(replace_line("learning_rate = 9.0")))
    found = start(workspace, wrong, approve=approve(), verify=None)
    (workspace / "train.py").write_text((workspace / "train.py").read_text().replace("range(200)", "range(300)"))
    halted = go_on(found, verify=GOOD, allow_run=True)
    assert (halted.status, halted.changed) == ("halted", ("train.py",))
    go_on(halted, diagnosis(confidence=0.5), accept_changes=True)
    assert (workspace / "train.py").read_text() == TRAIN.replace("range(200)", "range(300)")


def test_an_edit_between_a_failed_verification_and_the_revert_is_kept_and_named(workspace: Path) -> None:
    wrong = diagnosis(fix(replace_line("learning_rate = 9.0")))
    found = start(workspace, wrong, approve=approve(), verify=None)
    confirm_fix(found.folder, passed=False, comment="no")
    (workspace / "train.py").write_text((workspace / "train.py").read_text().replace("range(200)", "range(300)"))
    after = go_on(found, diagnosis(confidence=0.5))
    assert (workspace / "train.py").read_text() == TRAIN.replace("range(200)", "range(300)")
    assert "changed beside the fix, and kept when it was taken out: train.py" in after.notes


def test_an_edit_after_a_failed_verification_is_named_before_the_next_diagnosis(workspace: Path) -> None:
    wrong = diagnosis(fix(replace_line("learning_rate = 9.0")))
    edits = iter([lambda: (workspace / "other.py").write_text("value = 2\n")])
    script = Scripted([wrong, diagnosis()], during={"gather": lambda case: next(edits, lambda: None)()
                                                    if case.attempts else None})
    after = run_debug_session_sync("x", workspace, investigator=script, verify=GOOD, allow_run=True, examine=examined,
                                   report=False, approve=approve())
    assert (after.status, after.changed) == ("halted", ("other.py",))
    assert (workspace / "train.py").read_text() == TRAIN


@pytest.mark.slow
def test_a_halted_fix_is_under_test_for_other_sessions(workspace: Path) -> None:
    other = start(workspace)
    folder = killed_beside(workspace, other)
    (workspace / "other.py").write_text("value = 2\n")
    assert go_on(folder).status == "halted"
    assert other.diagnosis is not None
    decide(other.folder, approve()(other.diagnosis))
    stopped = go_on(other)
    assert stopped.status == "interrupted"
    assert "one fix at a time" in stopped.reason


def killed_beside(workspace: Path, other: SessionResult) -> str:
    """A second session, killed when its fix was recorded."""
    killed(workspace, "applied", GOOD)
    return next(s.folder for s in list_sessions(workspace) if s.session != other.session)


def test_what_was_read_or_run_of_other_files_is_not_taken_again(workspace: Path) -> None:
    (workspace / "evidence").mkdir()
    first = Case(workspace, workspace, Symptom(observed="x"), files="a" * 64)
    other = Case(workspace, workspace, Symptom(observed="x"), files="b" * 64)
    assert _state(first) != _state(other)
    kept = _marked(first, _folder(first))
    assert _folder(first) == kept != _folder(other)
    assert _folder(other) == _marked(other, _folder(other))
