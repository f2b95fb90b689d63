"""What a session is begun with is checked before anything starts: what came, what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted import Scripted, approve, diagnosis, examined

import traindx
from traindx.group import traindx as command_line
from traindx.model import Budget
from traindx.session import resume_session_sync, run_debug_session_sync
from traindx.terms import budget_from, runnable, script_of
from traindx_tools.errors import BadUsage


@pytest.mark.parametrize(("terms", "said"), [
    ({"symptom": None}, "symptom is of type NoneType: give a sentence"),
    ({"verify": 3}, "verify is of type int: give a shell command"),
    ({"verify": "python 'train"}, "cannot be read .*close its quotes"),
    ({"verify": "python trian.py --steps 3"}, "there is no script trian.py in .*; there is .*train.py"),
    ({"verify": ["python", "-u", "trian.py"]}, "no script trian.py"),
    ({"hear": 3}, r"hear is of type int \(3\): give a function that takes a Notice"),
    ({"approve": "A"}, r"approve is of type str \('A'\): give a function that takes the Diagnosis"),
    ({"budget": "10"}, "budget is of type str: give seconds"),
    ({"budget": 0}, "the budget makes no sense: seconds"),
    ({"budget": {"minutes": 3}}, "the budget makes no sense: minutes"),
    ({"artifacts": ["nope.log"]}, "there is no file or folder nope.log"),
    ({"artifacts": 3}, "artifacts is of type int"),
])
def test_what_makes_no_sense_is_said_before_a_session_is_begun(workspace: Path, terms: dict[str, object],
                                                              said: str) -> None:
    given = {"symptom": "x", **terms}
    with pytest.raises(BadUsage, match=said):
        run_debug_session_sync(given.pop("symptom"), workspace, investigator=Scripted([diagnosis()]), **given)
    assert not (workspace / "scratch").exists()


def test_the_terms_of_a_resumed_session_are_checked_too(workspace: Path) -> None:
    waiting = run_debug_session_sync("x", workspace, investigator=Scripted([diagnosis()]), examine=examined,
                                     report=False)
    with pytest.raises(BadUsage, match=r"no script trian\.py"):
        resume_session_sync(waiting.folder, verify="python trian.py", approve=approve())
    with pytest.raises(BadUsage, match="give seconds"):
        resume_session_sync(waiting.folder, budget=[3])


def test_a_budget_is_seconds_or_a_budget() -> None:
    assert budget_from(60) == Budget(seconds=60)
    assert budget_from({"attempts": 2}) == Budget(attempts=2)
    assert budget_from(None) is None
    assert traindx.Budget is Budget


@pytest.mark.parametrize("command", [
    "cd sub && python there.py", "python -m package", "make train", "python made.py; exit 1", "python $SCRIPT",
    "python -c 'print(1)'", "bash -c 'python x.py'", "torchrun x.py", "pytest tests", "python"])
def test_what_cannot_be_told_from_the_words_is_left_to_the_run(tmp_path: Path, command: str) -> None:
    runnable(command, tmp_path, "--run")


@pytest.mark.parametrize("command", ["--json", "-v", ["--out", "x"]])
def test_an_option_is_no_command(tmp_path: Path, command: str | list[str]) -> None:
    with pytest.raises(BadUsage, match="takes the command that starts the training and got '-"):
        runnable(command, tmp_path, "--run")


def test_a_plain_script_is_known_behind_variables_and_options() -> None:
    assert script_of(["A=1", "/usr/bin/python3", "-u", "train.py", "--x"]) == "train.py"
    assert script_of(["python", "-m", "train.py"]) is None


@pytest.mark.parametrize("arguments", [["diagnose", "{w}", "--run", "python trian.py"],
                                       ["experiment", "{w}", "--run", "python trian.py", "--change", "float32"],
                                       ["debug", "{w}", "--verify", "python trian.py"]])
def test_a_command_line_notices_a_script_that_is_not_there(workspace: Path, arguments: list[str]) -> None:
    done = CliRunner().invoke(command_line, [a.format(w=workspace) for a in arguments])
    assert isinstance(done.exception, BadUsage)
    assert "there is no script trian.py" in str(done.exception)
