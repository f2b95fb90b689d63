"""Answers, dollars and sources are kept, and every state of failure has its advice."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from traindx.investigators.claude_code import asking
from traindx.investigators.claude_code.cli import CliAsker
from traindx.investigators.claude_code.conversation import Conversations, Kept, Question
from traindx.investigators.claude_code.failures import ADVICE, AGAIN, HOPELESS, Failure
from traindx.investigators.claude_code.purse import Purse
from traindx.policy import Scope
from traindx.settings import Settings

QUESTION = Question("tracer", "Role: tracer", "look", {"type": "object"}, ("Read",))


def test_an_answer_is_found_again_by_its_question(tmp_path: Path):
    kept = Kept({"ok": True}, 0.01, 20, 1.5, ("https://example.org",))
    Conversations.of(tmp_path).keep(QUESTION, kept)
    assert Conversations.of(tmp_path).recall(QUESTION) == kept
    other = Question("tracer", "Role: tracer", "look again", {"type": "object"}, ("Read",))
    assert Conversations.of(tmp_path).recall(other) is None
    next((tmp_path / "conversation" / "answers").glob("*")).write_text("{")
    assert Conversations.of(tmp_path).recall(QUESTION) is None


def test_conversations_are_kept_redacted(tmp_path: Path):
    talk = Conversations.of(tmp_path)
    talk.note(QUESTION, "asked", {"prompt": "key sk-ant-api03-abcdefghijklmnop", "header": "Bearer abcdefghijkl"})
    text = next((tmp_path / "conversation").glob("*.jsonl")).read_text()
    assert "abcdefghijkl" not in text
    assert json.loads(text)["kind"] == "asked"


def test_dollars_are_counted_over_crashes(tmp_path: Path):
    purse = Purse(2.0, tmp_path / "spent.jsonl")
    first, second = purse.set_aside(1.0), purse.set_aside(0.6)
    assert first == (1, 1.0)
    assert second == (2, 0.6)
    purse.settle(1, 0.25)
    again = Purse(2.0, tmp_path / "spent.jsonl")
    assert again.spent == pytest.approx(0.85)
    assert again.set_aside(5.0) == (3, pytest.approx(1.15))
    assert again.set_aside(0.1) is None
    with (tmp_path / "spent.jsonl").open("a") as file:
        file.write('{"n": 4, "wh')
    assert Purse(2.0, tmp_path / "spent.jsonl").spent == pytest.approx(2.0)


def block(kind: str, /, **fields: Any) -> Any:
    """A message or a block of the SDK, by its class's name."""
    return dataclasses.make_dataclass(kind, fields)(**fields)


def test_only_what_was_really_fetched_is_a_source(tmp_path: Path):
    ours = CliAsker(tmp_path, Settings(), Scope(tmp_path), Conversations.of(tmp_path), Purse(1.0, tmp_path / "spent"))
    heard = asking.Heard()
    asks = [block("ToolUseBlock", id=str(n), name="WebFetch", input={"url": f"https://example.org/{n}"})
            for n in range(3)]
    came = [block("ToolResultBlock", tool_use_id="0", content="text", is_error=None),
            block("ToolResultBlock", tool_use_id="1", content="no", is_error=True),
            block("ToolResultBlock", tool_use_id="9", content="text", is_error=None)]
    ours.listen(QUESTION, block("AssistantMessage", content=asks), heard)
    ours.listen(QUESTION, block("UserMessage", content=came), heard)
    ours.listen(QUESTION, block("UserMessage", content="only words"), heard)
    assert heard.fetched == ["https://example.org/0"]


def test_every_state_has_advice():
    assert set(ADVICE) >= AGAIN | HOPELESS
    assert "pip install" in str(Failure("not-installed", "x"))
