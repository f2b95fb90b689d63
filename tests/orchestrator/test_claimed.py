"""A rejection that names a cause: the experiment that would test it, with its exact command."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from scripted import Scripted, diagnosis, examined

from traindx.at_terminal import describe
from traindx.claimed import commands
from traindx.model import Decision
from traindx.session import decide, run_debug_session_sync
from traindx.typed_next import next_commands

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def torch_run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "torch-zero-grad", tmp_path / "work"))


def changes(*found: str) -> list[str]:
    return [shlex.split(c)[shlex.split(c).index("--change") + 1] for c in found]


def test_a_claim_is_tested_by_the_catalogs_change_where_the_framework_has_a_hook(torch_run: Path) -> None:
    found = commands("it is the learning rate", torch_run, "python train.py", "the loss explodes")
    assert changes(*found)[0] == "learning-rate:times=0.1"
    assert shlex.split(found[0]) == ["traindx", "experiment", str(torch_run), "--run", "python train.py", "--change",
                                     "learning-rate:times=0.1", "--symptom", "the loss explodes"]


def test_the_words_choose_the_direction(torch_run: Path) -> None:
    assert changes(*commands("the learning rate is too low", torch_run, "python train.py"))[0] == \
        "learning-rate:times=10.0"


def test_without_a_hook_the_setting_of_that_name_is_changed(workspace: Path) -> None:
    assert changes(*commands("it is the learning rate", workspace, "python train.py")) == ["set:learning_rate=1.0"]
    assert changes(*commands("the learning rate is too small", workspace, "python train.py")) == [
        "set:learning_rate=100.0"]


@pytest.mark.parametrize("comment", ["no", "", "it is not the learning rate", "I saw something else"])
def test_what_names_no_cause_proposes_nothing(workspace: Path, comment: str) -> None:
    assert commands(comment, workspace, "python train.py") == ()


def test_without_a_command_that_trains_nothing_is_proposed_and_code_that_does_not_parse_names_no_setting(
        tmp_path: Path) -> None:
    assert commands("it is the learning rate", tmp_path, None) == ()
    (tmp_path / "train.py").write_text("import numpy\nlearning_rate = = 3\n")
    assert commands("it is the learning rate", tmp_path, "python train.py") == ()


@pytest.mark.parametrize("how", ["decide", "at the terminal"])
def test_the_rejected_session_says_it_and_keeps_it(workspace: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    said = Decision.reject(diagnosis(), "it is the learning rate")
    terms = {"investigator": Scripted([diagnosis()]), "examine": examined, "report": False, "verify": "python train.py"}
    if how == "decide":
        waiting = run_debug_session_sync("the loss explodes", workspace, **terms)
        result = decide(waiting.folder, said)
    else:
        asked = iter([said, None])
        result = run_debug_session_sync("the loss explodes", workspace, approve=lambda d: next(asked), **terms)
    command = (f"traindx experiment {workspace} --run 'python train.py' --change set:learning_rate=1.0 "
               "--symptom 'the loss explodes'")
    if how == "decide":
        assert result.status == "rejected"
        assert result.tests == (command,)
        assert next_commands(result)[0] == command.replace(str(workspace), ".")
        assert any("one change, one control" in row for row in describe(result))
    else:
        assert any(command in line.replace('\\"', '"') for line in (
            Path(result.folder) / "journal.jsonl").read_text().splitlines())


def test_a_rejection_without_a_cause_says_no_more(workspace: Path) -> None:
    waiting = run_debug_session_sync("x", workspace, investigator=Scripted([diagnosis()]), examine=examined,
                                     report=False)
    assert decide(waiting.folder, Decision.reject(diagnosis(), "no")).tests == ()
