"""What a session makes of the lead: kept over crashes, told when it failed, chosen by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_lead import ASKED, OPEN, PLACE, Answer, attack, proves, read_line, run, said
from sure_engine import SureEngine

from traindx.investigators import choose
from traindx.investigators.claude import ClaudeInvestigator
from traindx.investigators.claude_code import cli, sdk
from traindx.investigators.claude_code.asking import Asker
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.leading import keyed
from traindx.model import Decision
from traindx.session import resume_session_sync, run_debug_session_sync
from traindx.settings import Settings
from traindx.terminal import render_gate
from traindx_tools.errors import BadUsage, MissingExtra


def test_who_was_not_challenged_is_less_sure_and_says_so_first(work: Path, replies: dict[str, Answer]):
    replies["lead"] = proves()
    replies["adversary"] = Failure("late", "no answer")
    result = run(work)
    assert result.diagnosis.confidence == 0.85
    assert result.degraded == (f"unchallenged: {Failure('late', 'no answer')}",)
    shown = Path(result.documents["diagnosis.md"]).read_text()
    assert shown.index("Degraded") < shown.index("## Symptom")
    assert "Degraded" in render_gate(result.diagnosis).split("Symptom")[0]
    replies["lead"], replies["adversary"] = proves(), {"relation": "supports", "why": "looks right", "disproofs": [
        {"observation": "the shuffle", "looked_for": True, "found": False}]}
    result = run(work)
    assert result.diagnosis.confidence == 0.85
    assert "no check of the adversary stands" in result.degraded[0]


def test_a_session_without_its_lead_says_so_in_fields(work: Path, replies: dict[str, Answer]):
    replies["lead"] = Failure("unauthorized", "401")
    result = run(work)
    assert said() == ["look"], "after a key that is not valid nobody else is asked"
    assert result.status == "needs_more_data"
    assert result.investigators == ("engine",)
    assert result.degraded == (f"lead: {Failure('unauthorized', '401')}",)
    result = run(work, SureEngine())
    assert result.status == "awaiting_approval"
    assert result.diagnosis.confidence == 0.85
    assert [d.split(":")[0] for d in result.degraded] == ["lead", "unchallenged"]


def test_what_a_person_says_is_said_in_the_same_thread_and_nothing_else_again(work: Path, replies: dict[str, Answer]):
    replies["lead"] = proves()
    replies["adversary"] = attack("pairs after a repair: 0.987", found=False)
    decisions = iter([lambda d: Decision.revise(d, "the augmentation was changed last week"), lambda d: None])
    run(work, approve=lambda d: next(decisions)(d))
    assert said()[:5] == ["look", "facts", "guess", "attack", "news"]
    assert said().count("look") == said().count("facts") == said().count("guess") == 1
    news = ASKED[4]
    assert "the augmentation was changed last week" in news.prompt
    assert "# The case" not in news.prompt
    assert news.thread == "lead"


def test_what_was_concluded_is_presented_after_a_crash(work: Path, replies: dict[str, Answer],
                                                       monkeypatch: pytest.MonkeyPatch):
    replies["lead"] = proves()
    replies["adversary"] = attack("pairs after a repair: 0.987", found=False)
    diagnose = ClaudeInvestigator.diagnose

    async def killed(self: ClaudeInvestigator, case: Any) -> Any:
        raise RuntimeError("killed")

    monkeypatch.setattr(ClaudeInvestigator, "diagnose", killed)
    first = run(work)
    assert first.status == "interrupted"
    before = len(ASKED)
    monkeypatch.setattr(ClaudeInvestigator, "diagnose", diagnose)
    after = resume_session_sync(first.folder, report=False,
                                investigator=ClaudeInvestigator(Settings(backend="claude")))
    assert after.diagnosis.failure_mode == "project.labels-shuffled", after.reason
    assert len(ASKED) == before


def test_specialists_claims_are_checked_when_they_come_and_told_by_id(work: Path, replies: dict[str, Answer]):
    report = {"status": "found", "answer": "the labels", "evidence": [
        read_line(failure_mode="project.labels-shuffled"), read_line(quote="no such text", failure_mode=None)],
        "unknown": ["a batch of the loader"]}
    told = []

    def sends(question: Question, asker: Asker) -> dict[str, Any]:
        assert asker.reported is not None
        if "# Facts" in question.prompt:
            told.append(asker.reported("silent-bug-detector", f"Here it is: {json.dumps(report)}"))
            told.append(asker.reported("data-flow-tracer", "I think it is the loader."))
        return OPEN

    replies["lead"] = sends
    result = run(work)
    assert f"checked, for project.labels-shuffled: {read_line()['claim']} | train.py:{PLACE}" in told[0]
    assert "dropped: the labels are shuffled" in told[0]
    assert "open: a batch of the loader" in told[0]
    assert told[1].startswith("data-flow-tracer: no report in the asked form (it holds no JSON object)")
    assert result.investigators == ("engine", "lead", "silent-bug-detector")
    assert "silent-bug-detector for project.labels-shuffled" in result.reason


@pytest.mark.parametrize(("given", "said_of"), [("gpt", "expected offline, auto, claude, api"), (3, "expected"),
                                                (object(), "Investigator")])
def test_what_is_no_investigator_is_refused_before_a_folder_is_made(work: Path, given: Any, said_of: str):
    with pytest.raises(BadUsage, match=said_of):
        run_debug_session_sync("x", work, investigator=given)
    assert not (work / "scratch").exists()


def test_claude_by_its_name_is_the_claude_investigator(work: Path, replies: dict[str, Answer],
                                                       monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sdk, "installed", lambda: True)
    result = run_debug_session_sync("accuracy stays at chance", work, report=False, investigator="claude")
    assert said() == ["look", "facts", "guess"]
    assert result.investigators == ("engine", "lead")
    monkeypatch.setattr(sdk, "installed", lambda: False)
    with pytest.raises(MissingExtra):
        run_debug_session_sync("x", work, investigator="claude")


def test_without_the_sdk_the_offline_diagnosis_is_delivered(work: Path, monkeypatch: pytest.MonkeyPatch):
    def missing() -> Any:
        raise MissingExtra("The Claude investigator", "claude-agent-sdk", "agent")

    monkeypatch.setattr(cli, "sdk", missing)
    monkeypatch.setattr("traindx.investigators.claude_code.guard.sdk", missing)
    result = run(work)
    assert result.status == "needs_more_data"
    assert "not-installed" in result.degraded[0]


def test_the_backend_is_chosen_and_said(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sdk, "installed", lambda: False)
    assert choose.choose(work, Settings()).investigator.name == "offline"
    auto = choose.choose(work, Settings(backend="auto"))
    assert auto.investigator.name == "offline"
    assert " 'claude-agent-sdk>=" in auto.said
    with pytest.raises(MissingExtra):
        choose.choose(work, Settings(backend="claude"))


def test_a_session_goes_on_with_its_models_and_never_with_another_program(work: Path, replies: dict[str, Answer],
                                                                          monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sdk, "installed", lambda: True)
    begun = ClaudeInvestigator(Settings(backend="claude", model="of-the-session", dollars_all=9.0))
    folder = Path(run_debug_session_sync("accuracy stays at chance", work, report=False, investigator=begun).folder)
    kept = folder / "conversation" / "settings.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "cli_path": "/tmp/evil", "web": True, "odd": 1}))
    after = choose.going_on(folder)["investigator"].settings
    assert (after.model, after.dollars_all, after.cli_path, after.web) == ("of-the-session", 9.0, "", False)
    monkeypatch.setenv("TRAINDX_MODEL", "of-the-environment")
    assert choose.going_on(folder)["investigator"].settings.model == "of-the-environment"
    monkeypatch.setenv("TRAINDX_BACKEND", "offline")
    assert choose.going_on(folder) == {}
    offline = run_debug_session_sync("accuracy stays at chance", work, report=False)
    monkeypatch.delenv("TRAINDX_BACKEND")
    assert choose.going_on(offline.folder) == {}


def test_the_same_words_said_again_are_news_again():
    """Two fixes of different causes may fail with the same words: the lead hears of both, and of each once."""
    names = list(keyed(("strike 1: it failed", "look closer", "strike 1: it failed")))
    assert len(set(names)) == 3
    assert len(set(keyed(("look closer", "look closer")).values())) == 2, "an equal question is answered from memory"
    assert names == list(keyed(("strike 1: it failed", "look closer", "strike 1: it failed", "more")))[:3]
