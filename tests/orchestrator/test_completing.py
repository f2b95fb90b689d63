"""What a shell completes: session ids of the commands about a session, and the pages of `explain`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete, get_completion_class

from traindx.completing import page_ids, session_ids, with_files
from traindx.group import traindx
from traindx.model import Decision
from traindx.session import decide, read_result, run_debug_session_sync
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


def offered(shell: str, *words: str) -> list[tuple[str, str]]:
    """What a shell gets, with the kind of each: plain, file."""
    with_files()
    made = get_completion_class(shell)
    assert made is not None
    return [(c.type, c.value) for c in made(traindx, {}, "traindx", "_X").get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_where_nothing_else_is_known_the_shell_completes_files(shell: str) -> None:
    assert offered(shell, "diagnose", "ru") == [("file", "ru")]
    assert offered(shell, "diagnose", "--against", "") == [("file", "")]
    assert offered(shell, "run", "--", "python", "tr") == [("file", "tr")]
    assert offered(shell, "resume", "2026", "--give", "log") == [("file", "log")]
    assert offered(shell, "diag") == [("plain", "diagnose")]
    for words in (["diagnose", "--sym"], ["explain", "L204"], ["log", "x", "--format", "j"]):
        assert [kind for kind, _ in offered(shell, *words)] == ["plain"]
    assert offered(shell, "show", "no such session") == []
    assert offered(shell, "diagnose", "--nothing-is-called-so") == []


def test_a_decision_is_offered_the_sessions_that_wait_and_both_options(waiting: str) -> None:
    at = Path("scratch/debug") / waiting
    decide(at, Decision.reject(read_result(at).diagnosis, "no"))
    assert completed("show", "") == [waiting]
    assert completed("approve", "") == completed("reject", "") == []
    assert completed("approve", waiting, "--option", "") == ["A", "B"]
    assert completed("approve", waiting, "--option", "a") == ["A"]


def test_changes_probes_and_what_one_disagrees_with_are_offered() -> None:
    assert "learning-rate" in completed("experiment", "x", "--change", "learn")
    assert "all" in completed("run", "--probe", "")
    assert "L204" in completed("diagnose", "x", "--not", "L20")
    assert completed("experiment", "x", "--change", "\x1b[31m") == []
