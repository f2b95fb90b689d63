"""What a notebook shows: calls in place of commands, an error in two lines, an answer that is no interruption."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from scripted import Scripted, diagnosis, examined

from traindx import in_notebook
from traindx.diagnose import diagnose
from traindx.group import traindx
from traindx.in_a_cell import decision_calls, in_a_cell, sentence_in_a_cell
from traindx.in_brief import what_it_does
from traindx.journal import Journal
from traindx.model import Decision
from traindx.session import decide, read_result, run_debug_session_sync
from traindx.session_result import SessionResult
from traindx_tools.errors import TraindxError, UnreadableInput


def start(workspace: Path) -> SessionResult:
    return run_debug_session_sync("the loss explodes", workspace, investigator=Scripted([diagnosis()]), verify="true",
                                  examine=examined, report=False)


@pytest.mark.parametrize(("command", "cell"), [
    ("traindx debug . --verify 'python train.py'",
     'run_debug_session_sync("what you saw", ".", verify="python train.py", allow_run=True)'),
    ("traindx debug . --artifact 'my run/log.txt'",
     'run_debug_session_sync("what you saw", ".", artifacts=["my run/log.txt"])'),
    ("traindx resume 2026-1 --workspace '/a b'", 'resume_session_sync("2026-1", workspace="/a b")'),
    ("traindx diagnose a.log train.py --symptom 'loss is NaN'",
     'diagnose(["a.log", "train.py"], symptom="loss is NaN")'),
    ("traindx diagnose a.log --name Verlust=loss", 'diagnose(["a.log"], names={\'Verlust\': \'loss\'})'),
])
def test_a_command_is_the_call_that_does_it(command: str, cell: str) -> None:
    assert in_a_cell(command) == cell
    ast.parse(cell)


@pytest.mark.parametrize("command", ["traindx diagnose . --run 'python train.py'", "traindx resume 1 --remember",
                                     "traindx debug . --steps 10", "traindx plot log.txt", "traindx diagnose -",
                                     "python -c 'print(1)'", "traindx diagnose 'left open"])
def test_what_python_has_no_call_for_goes_to_the_shell(command: str) -> None:
    assert in_a_cell(command) == f"!{command}"


def test_commands_within_a_sentence() -> None:
    assert sentence_in_a_cell("see it (traindx show 20-1), then resume it (traindx resume 20-1 --workspace /a/b).") == (
        'see it (!traindx show 20-1), then resume it (resume_session_sync("20-1", workspace="/a/b")).')
    assert sentence_in_a_cell("nothing is left to do") == "nothing is left to do"


def test_the_calls_that_decide_can_be_typed() -> None:
    for call in decision_calls("result", "B"):
        ast.parse(call)


def test_in_a_notebook_the_next_step_is_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.txt").write_text("".join(f"step {i} loss {2.0 - 0.01 * i if i < 40 else float('nan')}\n"
                                              for i in range(80)))
    assert "!traindx" not in diagnose([tmp_path / "log.txt"]).terminal(verbose=True)
    fake = ModuleType("IPython")
    fake.get_ipython = lambda: SimpleNamespace(kernel=object(), user_ns={})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", fake)
    assert "  !traindx plot " in diagnose([tmp_path / "log.txt"]).terminal(verbose=True)


def test_an_error_is_two_lines_in_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "cell.py").write_text("def look():\n    return diagnose(['nowhere.txt'])\n\nlook()\n")
    with pytest.raises(UnreadableInput) as raised:
        exec(compile((tmp_path / "cell.py").read_text(), str(tmp_path / "cell.py"), "exec"), {"diagnose": diagnose})
    told = raised.value._render_traceback_()
    assert told[0].startswith("UnreadableInput: There is no file or folder 'nowhere.txt'.")
    assert told[1:] == ["  in: return diagnose(['nowhere.txt'])"]
    assert TraindxError("never raised")._render_traceback_() == ["TraindxError: never raised"]


def test_a_decision_that_nobody_went_on_with_is_no_interruption(workspace: Path) -> None:
    waiting = start(workspace)
    assert waiting.diagnosis is not None
    approved = decide(waiting.folder, Decision.approve(waiting.diagnosis, "A", by="ana"))
    assert (approved.status, approved.reason) == ("answered", "ana approved option A; nothing is changed yet")
    assert approved.commands == (f"traindx resume {waiting.session} --workspace {workspace}",)
    page = in_notebook.of_session("result", approved.status, (approved.reason,), approved.next_step, None)
    assert "answered: ana approved" in page
    assert "resume_session_sync(" in page


def test_what_was_cut_short_after_the_decision_is_one(workspace: Path) -> None:
    waiting = start(workspace)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.approve(waiting.diagnosis, "A"))
    with Journal(Path(waiting.folder) / "journal.jsonl") as journal:
        journal.append("note", {"applying": "A"})
    assert read_result(waiting.folder).status == "interrupted"


def test_every_command_that_may_come_next_is_explained() -> None:
    asked = {"approve", "clean", "completion", "doctor", "mcp", "reject", "resume", "review", "revise", "sessions",
             "show"}
    for name in set(traindx.commands) - asked:
        assert what_it_does(f"traindx {name} PATH"), name
