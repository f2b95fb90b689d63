"""Who investigated, and who was asked for and could not be reached: in the result, at the gate, in the confidence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from traindx.investigators import choose
from traindx.investigators.base import UNCHALLENGED
from traindx.investigators.claude_code import sdk
from traindx.investigators.messages_api import client
from traindx.journal import read_journal
from traindx.model import Decision
from traindx.notices import Notice
from traindx.session import resume_session_sync, run_debug_session_sync
from traindx.session_folder import opening_of
from traindx.session_result import SessionResult
from traindx.settings import Settings
from traindx.terminal import render_gate

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))


@pytest.fixture
def neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the SDK with its CLI nor the package of the API is installed."""
    monkeypatch.setattr(sdk, "installed", lambda: False)
    monkeypatch.setattr(client, "installed", lambda: False)


def auto(work: Path, **options: object) -> SessionResult:
    return run_debug_session_sync("loss is nan", work, investigator="auto", report=False, **options)


def test_a_chosen_engine_is_named_and_nothing_is_missing(work: Path) -> None:
    result = run_debug_session_sync("loss is nan", work, report=False)
    assert (result.investigators, result.degraded) == (("engine",), ())
    assert result.diagnosis is not None
    assert result.diagnosis.confidence > UNCHALLENGED, "its arithmetic is measured on runs that nobody challenged"
    shown = Path(result.documents["diagnosis.md"]).read_text()
    assert "Looked at by: engine (nobody challenged it)." in shown
    assert "Degraded" not in shown
    assert "looked at by: engine (nobody challenged it)" in render_gate(result.diagnosis)


def test_honest_ends_name_the_engine_too(tmp_path: Path) -> None:
    healthy = run_debug_session_sync("", shutil.copytree(EXAMPLES / "healthy", tmp_path / "well"), report=False)
    assert (healthy.status, healthy.investigators) == ("healthy", ("engine",))
    (tmp_path / "bare").mkdir()
    shutil.copy(EXAMPLES / "numpy-lr" / "log.txt", tmp_path / "bare" / "log.txt")
    wanting = run_debug_session_sync("loss is nan", tmp_path / "bare", report=False)
    assert (wanting.status, wanting.investigators, wanting.degraded) == ("needs_more_data", ("engine",), ())


@pytest.mark.usefixtures("neither")
def test_auto_that_reaches_nobody_is_degraded(work: Path) -> None:
    heard: list[Notice] = []
    result = auto(work, hear=heard.append)
    assert result.status == "awaiting_approval", result.reason
    assert result.investigators == ("engine",)
    assert [d.partition(": ")[0] for d in result.degraded] == ["lead", "unchallenged"]
    assert "claude: not-installed" in result.degraded[0]
    assert "api: not-installed" in result.degraded[0]
    assert " 'claude-agent-sdk>=" in result.degraded[0]
    assert result.diagnosis is not None
    assert result.diagnosis.confidence == UNCHALLENGED
    for shown in (Path(result.documents["diagnosis.md"]).read_text(), render_gate(result.diagnosis)):
        assert shown.index("Degraded") < shown.index("Claude cannot be reached") < shown.index("Symptom")
    assert any("because Claude cannot be reached" in n.text for n in heard if n.kind == "said")


@pytest.mark.usefixtures("neither")
def test_auto_without_a_diagnosis_says_who_did_not_look(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "numpy-lr" / "log.txt", tmp_path / "log.txt")
    result = auto(tmp_path)
    assert result.status == "needs_more_data"
    assert [d.partition(": ")[0] for d in result.degraded] == ["lead"]


@pytest.mark.slow
@pytest.mark.usefixtures("neither")
def test_a_degraded_session_stays_degraded_in_another_process(work: Path) -> None:
    waiting = auto(work)
    again = resume_session_sync(waiting.folder, report=False, approve=_once("revise"))
    assert again.status == "awaiting_approval", again.reason
    assert again.degraded == waiting.degraded
    chosen = resume_session_sync(waiting.folder, report=False, approve=_once("revise"), investigator="offline")
    assert chosen.degraded == (), "the person chose the engine"
    assert opening_of(read_journal(Path(waiting.folder) / "journal.jsonl")).degraded == ()


@pytest.mark.slow
def test_a_session_of_claude_whose_package_is_gone_is_degraded(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from traindx.investigators.claude_code.conversation import keep_settings

    begun = run_debug_session_sync("loss is nan", work, report=False)
    keep_settings(Path(begun.folder), Settings(backend="claude"))
    monkeypatch.setattr(sdk, "installed", lambda: False)
    after = choose.going_on(begun.folder)
    assert after["investigator"].investigator.name == "offline"
    assert "claude: not-installed" in after["investigator"].degraded[0]
    result = resume_session_sync(begun.folder, report=False, approve=_once("revise"), **after)
    assert [d.partition(": ")[0] for d in result.degraded] == ["lead", "unchallenged"]


def test_a_key_in_an_error_is_not_written_down(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from traindx.investigators.claude_code.failures import Failure

    async def wrong(_: Settings) -> Failure:
        return Failure("unauthorized", "api_key: sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv is no key")

    monkeypatch.setattr(choose, "_lacking", lambda _: None)
    monkeypatch.setattr(choose, "unreachable", wrong)
    result = auto(work)
    assert "unauthorized" in result.degraded[0]
    assert "AbCdEfGh" not in Path(result.folder, "journal.jsonl").read_text()


def _once(said: str):
    """A person who sends one diagnosis back and waits with the next."""
    left = [said]
    return lambda d: Decision.revise(d, "look at the clip again") if left and left.pop() else None
