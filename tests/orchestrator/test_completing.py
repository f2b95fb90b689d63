"""What a shell completes: session ids of the commands about a session, and the pages of `explain`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from traindx.completing import page_ids, session_ids
from traindx.group import traindx
from traindx.session import run_debug_session_sync
from traindx_tools.rules import explained_rules, rule_names

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"
OF_A_SESSION = ("approve", "reject", "revise", "resume", "review", "show")


def completed(*words: str) -> list[str]:
    """As a shell asks: the last word is the one that is being typed."""
    return [c.value for c in ShellComplete(traindx, {}, "traindx", "_X").get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    monkeypatch.chdir(work)
    return run_debug_session_sync("loss is nan", work, report=False).session


@pytest.mark.parametrize("command", OF_A_SESSION)
def test_the_sessions_of_this_folder_are_offered(command: str, waiting: str) -> None:
    assert completed(command, waiting[:5]) == [waiting]
    assert completed(command, "nothing begins so") == []


def test_elsewhere_those_of_a_named_workspace_else_all_that_are_known(waiting: str, tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert waiting in completed("show", "")
    assert completed("show", "--workspace", "work", "") == [waiting]
    assert completed("show", "--workspace", "nowhere", "") == []


def test_a_damaged_session_is_offered_and_says_so(waiting: str) -> None:
    (Path("scratch/debug") / waiting / "journal.jsonl").write_text("no journal\n")
    found = session_ids(click.Context(traindx), click.Argument(["session"]), "")
    assert [(c.value, c.help) for c in found] == [(waiting, "cannot be read")]


def test_rules_and_failure_modes_are_offered_in_either_case() -> None:
    assert "L204" in completed("explain", "l20")
    assert "lr.too-high" in completed("explain", "lr.")
    found = {c.value: c.help for c in page_ids(click.Context(traindx), click.Argument(["name"]), "C10")}
    assert found["C107"] == "Logarithm of something that can be 0"
    assert found["C103"] == "Tensors with their graph are kept over training steps"


def test_a_completion_that_fails_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx_tools.rules.rule_names", lambda: 1 / 0)
    assert completed("explain", "L2") == []


def test_every_page_is_named_without_importing_its_rule() -> None:
    assert set(rule_names()) == set(explained_rules())
