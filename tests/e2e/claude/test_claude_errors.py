"""Every way in which a question can fail ends in its own clear state, with the real CLI; a session still delivers."""

from __future__ import annotations

import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from one_question import asker, question
from scripted_api import Drop, Fail, Garbage, Text, Use, Wait, answer, scripted

from traindx.investigators.choose import chosen
from traindx.investigators.claude import ClaudeInvestigator
from traindx.investigators.claude_code.failures import ADVICE
from traindx.notices import as_lines
from traindx.session import run_debug_session
from traindx.settings import Settings

pytestmark = pytest.mark.slow

FAILURES: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("a key that is not valid", [Fail(401, "authentication_error", "invalid x-api-key")], {}, "unauthorized"),
    ("no right to the model", [Fail(403, "permission_error")], {}, "unauthorized"),
    ("a model that is not there", [Fail(404, "not_found_error", "model: nothing")], {}, "no-model"),
    ("too many requests", [Fail(429, "rate_limit_error")], {}, "rate-limited"),
    ("overloaded", [Fail(529, "overloaded_error")], {}, "overloaded"),
    ("a fault of the server", [Fail(500)], {}, "server-error"),
    ("a request that is not accepted", [Fail(400, "invalid_request_error", "no such field")], {}, "rejected"),
    ("a stream that breaks off", [Drop()], {}, "stream-broken"),
    ("a stream that is no stream", [Garbage()], {}, "stream-broken"),
    ("a refusal", [Text("", stop_reason="refusal")], {}, "refused"),
    ("words instead of the form", [Text("I think it is the learning rate.")], {}, "no-answer"),
    ("never the form", [answer({"no": "such key"})], {"turns_each": 40}, "no-answer"),
    ("too many turns", [Use("Glob", {"pattern": "*.py"})], {"turns_each": 2}, "turns"),
]


@pytest.mark.parametrize(("script", "changes", "state"), [f[1:] for f in FAILURES], ids=[f[0] for f in FAILURES])
async def test_a_failure_has_a_state_and_advice(script: list[Any], changes: dict[str, Any], state: str, work: Path,
                                                tmp_path: Path, settings: Callable[..., Settings]) -> None:
    with scripted({"tester": script}) as api:
        reply = await asker(work, tmp_path / "scratch", settings(api.url, **changes)).ask(question(), 90)
    assert reply.answer is None
    assert reply.failure is not None
    assert reply.failure.state == state, str(reply.failure)
    assert ADVICE[state] in str(reply.failure)


async def test_what_passes_is_tried_again_with_pauses(work: Path, tmp_path: Path,
                                                      settings: Callable[..., Settings]) -> None:
    busy = [Fail(529, "overloaded_error"), Fail(429, "rate_limit_error")]
    with scripted({"tester": lambda body: busy.pop() if busy else answer({"ok": True})}) as api:
        reply = await asker(work, tmp_path / "scratch", settings(api.url, retries=4)).ask(question(), 90)
    assert reply.answer == {"ok": True}, reply.failure
    begun = [a.begun for a in api.asked]
    assert len(begun) == 3
    assert begun[1] - begun[0] > 0.3


async def test_an_answer_without_form_is_asked_for_once_more(work: Path, tmp_path: Path,
                                                             settings: Callable[..., Settings]) -> None:
    said = [Text("It is fine."), Text("It is fine.")]
    with scripted({"tester": lambda body: said.pop() if said else answer({"ok": True})}) as api:
        reply = await asker(work, tmp_path / "scratch", settings(api.url)).ask(question(), 90)
    assert reply.answer == {"ok": True}, reply.failure


async def test_the_dollars_of_one_question_end_it(work: Path, tmp_path: Path,
                                                  settings: Callable[..., Settings]) -> None:
    with scripted({"tester": [Use("Glob", {"pattern": "*.py"})]}) as api:
        api.usage = {"input_tokens": 200_000, "output_tokens": 5_000}
        ours = asker(work, tmp_path / "scratch", settings(api.url, dollars_each=0.5, dollars_all=0.9))
        reply = await ours.ask(question(), 90)
        assert reply.failure is not None
        assert reply.failure.state == "budget-each"
        assert ours.purse.spent >= 0.5
        again = await ours.ask(question("another"), 90)
    assert again.failure is not None
    assert again.failure.state == "budget-all"
    assert not api.of("another")


async def test_what_comes_late_is_not_waited_for(work: Path, tmp_path: Path,
                                                 settings: Callable[..., Settings]) -> None:
    released = threading.Event()
    with scripted({"tester": [Wait(answer({"ok": True}), released)]}) as api:
        try:
            reply = await asker(work, tmp_path / "scratch", settings(api.url)).ask(question(), 4)
        finally:
            released.set()
    assert reply.failure is not None
    assert reply.failure.state == "late"
    assert reply.seconds < 15


async def test_a_server_that_is_not_there(work: Path, tmp_path: Path, settings: Callable[..., Settings]) -> None:
    reply = await asker(work, tmp_path / "scratch", settings("http://127.0.0.1:9")).ask(question(), 60)
    assert reply.failure is not None
    assert reply.failure.state == "unreachable", str(reply.failure)


async def test_a_cli_that_is_missing_or_breaks(work: Path, tmp_path: Path, settings: Callable[..., Settings]) -> None:
    missing = settings("http://127.0.0.1:9", cli_path=str(tmp_path / "no-claude"))
    reply = await asker(work, tmp_path / "scratch", missing).ask(question(), 30)
    assert reply.failure is not None
    assert reply.failure.state == "cli-missing", str(reply.failure)
    broken = tmp_path / "claude"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    reply = await asker(work, tmp_path / "scratch", settings("http://127.0.0.1:9", cli_path=str(broken))).ask(
        question("other"), 60)
    assert reply.failure is not None
    assert reply.failure.state in ("cli-broke-off", "cli-too-old"), str(reply.failure)


OLD = """#!{python}
# A CLI of before hooks could block on their own failure: it answers the handshake, and would let everything pass.
import json, sys
for row in sys.stdin:
    asked = json.loads(row)
    if asked.get("type") == "control_request":
        print(json.dumps({{"type": "control_response", "response": {{
            "subtype": "success", "request_id": asked["request_id"], "response": {{"commands": []}}}}}}), flush=True)
"""


async def test_a_cli_that_is_too_old_to_hold_the_fences_is_told_apart(work: Path, tmp_path: Path,
                                                                      settings: Callable[..., Settings]) -> None:
    old = tmp_path / "claude"
    old.write_text(OLD.format(python=sys.executable))
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    made = settings("http://127.0.0.1:9", cli_path=str(old))
    reply = await asker(work, tmp_path / "scratch", made).ask(question(), 60)
    assert reply.failure is not None
    assert reply.failure.state == "cli-too-old", str(reply.failure)
    assert "pip install -U claude-agent-sdk" in str(reply.failure)


GONE: list[tuple[str, list[Any] | None, dict[str, Any], str]] = [
    ("wrong key", [Fail(401, "authentication_error", "invalid x-api-key")], {}, "unauthorized"),
    ("no CLI", None, {"cli_path": "/nowhere/claude"}, "cli-missing"),
    ("no network", None, {}, "unreachable"),
]


@pytest.mark.parametrize(("script", "changes", "state"), [g[1:] for g in GONE], ids=[g[0] for g in GONE])
async def test_a_session_without_claude_ends_at_once_and_says_so(script: list[Any] | None, changes: dict[str, Any],
                                                                 state: str, work: Path,
                                                                 settings: Callable[..., Settings]) -> None:
    with scripted({"ml-debugger-specialist": script or [Fail(500)]}) as api:
        made = settings(api.url if script else "http://127.0.0.1:9", **changes)
        result = await run_debug_session("loss is nan", work, report=False, investigator=ClaudeInvestigator(made))
    assert result.status == "awaiting_approval", result.reason
    assert result.diagnosis is not None
    assert result.diagnosis.failure_mode == "loss.log-of-zero"
    assert result.investigators == ("engine",)
    assert [d.partition(": ")[0] for d in result.degraded] == ["lead", "unchallenged"]
    assert state in result.degraded[0]
    assert ADVICE[state] in result.degraded[0]
    assert result.diagnosis.confidence == 0.85, "nobody challenged it"
    assert (Path(result.folder) / "diagnosis.md").read_text().index("Degraded") < 400
    assert len(api.asked) == (1 if script else 0), "after a failure that all would share nobody else is asked"


@pytest.mark.parametrize(("script", "state"), [
    ([Fail(401, "authentication_error", "invalid x-api-key")], "unauthorized"),
    ([Fail(403, "permission_error")], "unauthorized"), (None, "unreachable")], ids=["401", "403", "refused"])
async def test_with_the_usual_settings_nothing_hopeless_is_repeated(script: list[Any] | None, state: str, work: Path,
                                                                    settings: Callable[..., Settings]) -> None:
    said: list[str] = []
    with scripted({"ml-debugger-specialist": script or [Fail(500)]}) as api:
        made = settings(api.url if script else "http://127.0.0.1:9", retries=Settings().retries)
        result = await run_debug_session("loss is nan", work, report=False,
                                         investigator=ClaudeInvestigator(made, as_lines(said.append)))
    assert state in result.degraded[0], result.degraded
    assert len(api.asked) <= 1, "the CLI announces its second request before it makes it"
    kept = "".join(p.read_text() for p in (Path(result.folder) / "conversation").glob("*.jsonl"))
    assert kept.count("api_retry") <= 2, "one message, one line of it"


async def test_auto_takes_claude_where_it_answers_and_says_which(work: Path, settings: Callable[..., Settings]) -> None:
    with scripted({"probe": [answer({"ok": True})]}) as api:
        taken = await chosen(work, settings(api.url, backend="auto"))
    assert taken.investigator.name == "claude"
    assert "with Claude" in taken.said
    with scripted({"probe": [Fail(401, "authentication_error", "invalid x-api-key")]}) as api:
        taken = await chosen(work, settings(api.url, backend="auto"))
    assert taken.investigator.name == "offline"
    assert "unauthorized" in taken.said
    assert taken.fixer is None
