"""A person's edits at every moment between the diagnosis and the verdict: named, and never taken for the fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from killed_at import killed
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined, fix, replace_line

from traindx.model import Instruction, NeedsData
from traindx.session import confirm_fix, decide, resume_session_sync, run_debug_session_sync
from traindx.session_result import SessionResult
from traindx.undoing import undo_fix

GOOD = "grep -q 'learning_rate = 0.1' train.py"
MINE = ("range(200)", "range(300)")


def start(workspace: Path, *conclusions: object, **options: object) -> SessionResult:
    terms = {"verify": GOOD, "allow_run": True, "examine": examined, "report": False}
    return run_debug_session_sync("x", workspace, investigator=Scripted(list(conclusions) or [diagnosis()]),
                                  **{**terms, **options})


def go_on(found: SessionResult | str, *conclusions: object, **options: object) -> SessionResult:
    folder = found if isinstance(found, str) else found.folder
    return resume_session_sync(folder, investigator=Scripted(list(conclusions) or [diagnosis()]),
                               **{"examine": examined, "report": False, **options})


def approved(workspace: Path, *conclusions: object) -> SessionResult:
    """A session whose diagnosis was approved, and whose fix is not in the files."""
    waiting = start(workspace, *conclusions)
    assert waiting.diagnosis is not None
    return decide(waiting.folder, approve()(waiting.diagnosis))


def edit(workspace: Path, old: str = MINE[0], new: str = MINE[1], path: str = "train.py") -> str:
    """A line changed as a person would; returns what the file holds then."""
    file = workspace / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return file.read_text()


EDITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "target": (edit, "train.py"),
    "other": (lambda w: edit(w, "value = 1", "value = 2", "other.py"), "other.py"),
    "new": (lambda w: (w / "more.py").write_text("x = 1\n"), "more.py"),
    "deleted": (lambda w: (w / "other.py").unlink(), "other.py"),
    "mode": (lambda w: (w / "other.py").chmod(0o755), "other.py"),
    "mode of the target": (lambda w: (w / "train.py").chmod(0o755), "train.py"),
    "target deleted": (lambda w: (w / "train.py").unlink(), "train.py"),
    "link": (lambda w: ((w / "other.py").unlink(), (w / "other.py").symlink_to("train.py")), "other.py"),
}
"""What a person may do, and the file that has to be named."""


def state(workspace: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in workspace.iterdir() if p.is_file() and not p.is_symlink()}


# Between the diagnosis and the application


@pytest.mark.parametrize("kind", [kind for kind in EDITS if kind != "mode of the target"])
def test_an_edit_after_the_diagnosis_is_named_and_nothing_is_applied(workspace: Path, kind: str) -> None:
    found = approved(workspace)
    change, named = EDITS[kind]
    change(workspace)
    mine = state(workspace)
    after = go_on(found, NeedsData(reason="more") if named == "train.py" else diagnosis())
    assert after.status in ("halted", "needs_more_data"), after.status
    assert not after.attempts
    assert named in " ".join((*after.changed, *after.notes))
    assert state(workspace) == mine


def test_the_target_made_writable_or_executable_is_the_same_content(workspace: Path) -> None:
    found = approved(workspace)
    (workspace / "train.py").chmod(0o755)
    assert go_on(found).status == "fixed"
    assert (workspace / "train.py").stat().st_mode & 0o777 == 0o755


def test_an_edit_of_the_target_asks_for_a_new_diagnosis_and_a_new_approval(workspace: Path) -> None:
    found = approved(workspace)
    mine = edit(workspace)
    again = go_on(found)
    assert again.status == "awaiting_approval"
    assert "train.py changed since the diagnosis" in again.reason
    assert (workspace / "train.py").read_text() == mine
    assert again.diagnosis is not None
    decide(again.folder, approve()(again.diagnosis))
    assert go_on(again).status == "fixed"
    assert (workspace / "train.py").read_text() == FIXED.replace(*MINE)


def test_an_edit_while_the_person_is_asked_is_one_after_the_diagnosis(workspace: Path) -> None:
    asked = []

    def edits_and_approves(d):
        asked.append(d.digest())
        if len(asked) == 1:
            edit(workspace)
        return approve()(d)

    after = start(workspace, approve=edits_and_approves)
    assert (after.status, len(asked), len(set(asked))) == ("fixed", 2, 1)
    assert (workspace / "train.py").read_text() == FIXED.replace(*MINE)


def test_all_files_are_named_where_the_target_is_one_of_them(workspace: Path) -> None:
    found = approved(workspace)
    edit(workspace)
    edit(workspace, "value = 1", "value = 2", "other.py")
    after = go_on(found)
    assert (after.status, after.changed) == ("halted", ("other.py", "train.py"))
    assert "changed since the diagnosis" in after.reason
    again = go_on(after, accept_changes=True)
    assert again.status == "awaiting_approval", "the target is another one than the diagnosis was made of"


def test_an_edit_that_is_put_back_halts_nothing(workspace: Path) -> None:
    found = approved(workspace)
    edit(workspace)
    edit(workspace, *reversed(MINE))
    assert go_on(found).status == "fixed"


def test_a_halt_ends_where_the_files_are_put_back(workspace: Path) -> None:
    found = approved(workspace)
    edit(workspace, "value = 1", "value = 2", "other.py")
    halted = go_on(found)
    assert halted.status == "halted"
    edit(workspace, "value = 2", "value = 1", "other.py")
    assert go_on(halted).status == "fixed"


def test_what_is_accepted_is_what_was_named(workspace: Path) -> None:
    found = approved(workspace)
    edit(workspace, "value = 1", "value = 2", "other.py")
    halted = go_on(found)
    (workspace / "more.py").write_text("x = 1\n")
    again = go_on(halted, accept_changes=True)
    assert (again.status, again.changed) == ("halted", ("more.py",))
    assert go_on(again, accept_changes=True).status == "fixed"


def test_an_edit_before_a_change_by_hand_is_named(workspace: Path) -> None:
    told = fix(instructions=[Instruction(path="train.py", line=4, text="set learning_rate to 0.1")])
    found = approved(workspace, diagnosis(told))
    edit(workspace)
    after = go_on(found, diagnosis(told))
    assert after.status == "awaiting_approval"
    assert "train.py" in after.reason


def test_an_edit_while_the_fixer_works_is_named(workspace: Path) -> None:
    told = fix(instructions=[Instruction(path="train.py", line=4, text="set learning_rate to 0.1")])

    def fixer(d, f):
        edit(workspace)
        return [replace_line("learning_rate = 0.1")]

    after = start(workspace, diagnosis(told), approve=approve(), fixer=fixer)
    assert (after.status, after.changed) == ("halted", ("train.py",))
    assert (workspace / "train.py").read_text() == TRAIN.replace(*MINE)


def test_an_edit_while_the_old_run_is_read_is_never_part_of_the_fix(workspace: Path) -> None:
    found = approved(workspace)
    edits = iter([lambda: edit(workspace), lambda: edit(workspace, "value = 1", "value = 2", "other.py")])

    def slow(paths):
        next(edits, lambda: None)()
        return examined(paths)

    after = go_on(found, examine=slow)
    assert after.status != "fixed"
    assert "train.py" in " ".join((*after.changed, after.reason))
    assert "learning_rate = 10.0" in (workspace / "train.py").read_text()


# After a crash


SOON = {("planned", "target"), ("written", "target"), ("written", "other"), ("written", "mode of the target"),
        ("applied", "target"), ("applied", "new"), ("applied", "deleted")}
"""What of the pairs is tried in each run; the others with the slow tests: each kills a process."""


@pytest.mark.parametrize(("moment", "kind"), [
    pytest.param(moment, kind, marks=[] if (moment, kind) in SOON else [pytest.mark.slow])
    for moment in ("planned", "written", "applied") for kind in EDITS])
def test_a_file_that_is_neither_as_it_was_nor_as_fixed_halts(workspace: Path, moment: str, kind: str) -> None:
    folder = killed(workspace, moment, GOOD)
    change, named = EDITS[kind]
    change(workspace)
    mine = state(workspace)
    after = go_on(folder)
    assert (after.status, after.changed) == ("halted", (named,)), after.reason
    if moment == "written" and kind not in ("target", "target deleted"):
        mine["train.py"] = TRAIN  # nothing tells of the fix yet: it is taken out again
    assert state(workspace) == mine
    assert not any("the verification wrote" in n for n in after.notes)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["planned", "written", "applied", "judged"])
def test_a_kill_without_an_edit_goes_on_to_the_end(workspace: Path, moment: str) -> None:
    folder = killed(workspace, moment, f"{GOOD} && echo 1 > metrics.csv")
    after = go_on(folder)
    assert after.status == "fixed", after.reason
    assert after.notes == ("the verification wrote: metrics.csv",)
    assert (workspace / "train.py").read_text() == FIXED


@pytest.mark.slow
def test_an_accepted_edit_of_the_target_is_on_both_sides_of_the_comparison(workspace: Path) -> None:
    folder = killed(workspace, "applied", "cat train.py >> ../seen.txt; " + GOOD)
    mine = edit(workspace)
    halted = go_on(folder)
    assert halted.status == "halted"
    done = go_on(halted, accept_changes=True)
    assert done.status == "fixed", done.reason
    assert (workspace / "train.py").read_text() == mine == FIXED.replace(*MINE)
    ran = [run for run in (workspace.parent / "seen.txt").read_text().split("import numpy as np\n") if run]
    assert len(ran) >= 1
    assert all(MINE[1] in run for run in ran)
    assert any("train.py" in n and "accepted" in n for n in done.notes)


@pytest.mark.slow
def test_an_accepted_edit_in_the_lines_of_the_fix_is_refused(workspace: Path) -> None:
    folder = killed(workspace, "applied", GOOD)
    edit(workspace, "learning_rate = 0.1", "learning_rate = 0.2")
    halted = go_on(folder)
    with pytest.raises(Exception, match=r"train\.py.*--undo|same lines"):
        go_on(halted, accept_changes=True)
    edit(workspace, "learning_rate = 0.2", "learning_rate = 0.1")
    assert go_on(halted).status == "fixed"


@pytest.mark.slow
def test_a_halted_fix_can_be_taken_back_and_the_edit_stays(workspace: Path) -> None:
    folder = killed(workspace, "applied", GOOD)
    edit(workspace)
    halted = go_on(folder)
    assert halted.standing == ("train.py:4",)
    assert any("--undo" in c for c in halted.commands)
    back = undo_fix(folder)
    assert (back.status, (workspace / "train.py").read_text()) == ("awaiting_approval", TRAIN.replace(*MINE))
    assert back.diagnosis is not None
    decide(back.folder, approve()(back.diagnosis))
    again = go_on(back)
    assert again.status == "awaiting_approval"
    assert "train.py changed since the diagnosis" in again.reason


# While the verification runs

WAITS = "echo up >> ../up; while [ ! -e ../go ]; do sleep 0.05; done; echo 1 > metrics.csv; "


def running(workspace: Path) -> str:
    """A session that is killed while its fix is being verified; the command goes on."""
    waits = f"{GOOD} || exit 1; {WAITS}"
    return killed(workspace, "never", waits, when=workspace.parent / "up")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["target", "other", "new", "deleted", "mode of the target"])
def test_an_edit_while_the_command_of_a_killed_session_runs(workspace: Path, kind: str) -> None:
    folder = running(workspace)
    change, named = EDITS[kind]
    change(workspace)
    (workspace.parent / "go").touch()
    after = go_on(folder)
    assert (after.status, after.changed) == ("halted", (named,)), after.reason
    assert after.notes == ("the verification wrote: metrics.csv",)


@pytest.mark.slow
def test_what_appeared_after_the_command_ended_is_not_of_the_command(workspace: Path) -> None:
    folder = killed(workspace, "judged", f"{GOOD} && echo 1 > metrics.csv")
    (workspace / "data.csv").write_text("1\n")
    (workspace / "metrics.csv").write_text("2\n")
    after = go_on(folder)
    assert (after.status, after.changed) == ("halted", ("data.csv", "metrics.csv")), after.notes


@pytest.mark.parametrize(("kind", "named"), [("target", "train.py"), ("other", "other.py"), ("new", "more.py")])
def test_an_edit_while_a_live_session_verifies(workspace: Path, kind: str, named: str) -> None:
    """The command's own shell stands in for the person: what it does here it did not do on the unfixed code."""
    edits = {"target": "echo '# mine' >> train.py", "other": "echo '# mine' >> other.py", "new": "echo > more.py"}
    after = start(workspace, approve=approve(), verify=f"{GOOD} || exit 1; {edits[kind]}; echo 1 > metrics.csv")
    assert (after.status, after.changed) == ("halted", (named,)), after.reason
    assert after.notes == ("the verification wrote: metrics.csv",)


def test_a_file_of_code_that_the_command_writes_on_the_unfixed_code_too_is_its_own(workspace: Path) -> None:
    command = "date +%s%N > stamp.py; echo 1 >> other.py; " + GOOD
    after = start(workspace, approve=approve(), verify=command)
    assert after.status == "fixed", after.reason
    assert after.notes == ("the verification wrote: other.py, stamp.py",)


def test_a_snapshot_of_the_code_that_each_run_writes_is_no_edit(workspace: Path) -> None:
    (workspace / "logs").mkdir()
    (workspace / "logs/train.py").write_text(TRAIN)
    after = start(workspace, approve=approve(), verify=f"cp train.py logs/train.py; {GOOD}")
    assert after.status == "fixed", after.reason
    assert after.notes == ("the verification wrote: logs/train.py",)


def test_a_command_that_runs_a_notebook_in_place_is_no_edit(tmp_path: Path) -> None:
    import json

    def book(rate: str, output: str) -> str:
        cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "source": [rate + "\n", "print(rate)"],
                "outputs": [{"output_type": "stream", "name": "stdout", "text": [output]}] if output else []}
        return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)

    (tmp_path / "w").mkdir()
    (tmp_path / "w/train.ipynb").write_text(book("rate = 10.0", ""))
    (tmp_path / "ran.ipynb").write_text(book("rate = 0.1", "0.1\n"))
    rows = (tmp_path / "w/train.ipynb").read_text().split("\n")
    row, old = next((n, text) for n, text in enumerate(rows, 1) if "rate = 10" in text)
    told = fix(replace_line(old.replace("10.0", "0.1"), line=row, old=old, path="train.ipynb"))
    command = f"grep -q 'rate = 0.1' train.ipynb && cp {tmp_path}/ran.ipynb train.ipynb"
    after = start(tmp_path / "w", diagnosis(told), approve=approve(), verify=command)
    assert after.status == "fixed", after.reason


def test_what_is_accepted_is_verified_anew_and_halts_once(workspace: Path) -> None:
    command = f"{GOOD} || exit 1; date +%s%N > made.py"
    halted = start(workspace, approve=approve(), verify=command)
    assert (halted.status, halted.changed) == ("halted", ("made.py",))
    done = go_on(halted, accept_changes=True)
    assert done.status == "fixed", done.reason


def test_a_person_who_confirms_a_file_that_changed_since_is_told(workspace: Path) -> None:
    found = start(workspace, approve=approve(), verify=None)
    edit(workspace)
    confirm_fix(found.folder, passed=True, comment="ran overnight")
    done = go_on(found)
    assert done.verification == "fixed"
    assert any("train.py" in n and "since the fix" in n for n in done.attempts[0].verification.notes)


def test_a_run_by_hand_writes_what_it_writes(workspace: Path) -> None:
    found = start(workspace, approve=approve(), verify=None, allow_run=False)
    (workspace / "metrics.csv").write_text("1\n")
    done = go_on(found, verify=GOOD, allow_run=True)
    assert done.status == "fixed", done.reason
    assert any("metrics.csv" in n for n in done.notes)


def test_an_edit_of_code_before_a_command_is_given_halts(workspace: Path) -> None:
    found = start(workspace, approve=approve(), verify=None, allow_run=False)
    edit(workspace, "value = 1", "value = 2", "other.py")
    halted = go_on(found, verify=GOOD, allow_run=True)
    assert (halted.status, halted.changed) == ("halted", ("other.py",))
