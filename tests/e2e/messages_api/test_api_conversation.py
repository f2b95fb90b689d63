"""One question over the Messages API: the tools, the answer's form, the cache, what is counted and paid."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from one_question import asker, question
from scripted_api import (
    Drop,
    ErrorInStream,
    Fail,
    Garbage,
    Several,
    Text,
    Use,
    Wait,
    answer,
    scripted,
    system_text,
    tokens_of,
)

from traindx.investigators.claude_code.askers import purse_of
from traindx.investigators.claude_code.asking import Asker, Reply
from traindx.investigators.claude_code.failures import ADVICE
from traindx.investigators.messages_api.asking import ApiAsker
from traindx.investigators.messages_api.client import waiting
from traindx.notices import Notice
from traindx.settings import Settings

Made = Callable[..., Settings]


def ours(work: Path, tmp_path: Path, settings: Settings, **more: Any) -> Asker:
    made = asker(work, tmp_path / "scratch", settings, ApiAsker, **more)
    made.purse = purse_of(settings, tmp_path / "scratch")
    return made


async def ask(work: Path, tmp_path: Path, settings: Settings, seconds: float = 60.0, **more: Any) -> Reply:
    return await ours(work, tmp_path, settings, **more).ask(question(model=settings.model), seconds)


def results(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What came back from every tool call."""
    return [b for m in body["messages"] if m["role"] == "user" for b in m["content"] if b["type"] == "tool_result"]


@pytest.mark.slow
async def test_tools_are_used_and_the_answer_is_handed_over(work: Path, tmp_path: Path, settings: Made) -> None:
    script = [
        Use("Read", {"file_path": "train.py", "offset": 44, "limit": 4}),
        Several([Use("Grep", {"pattern": r"np\.clip", "path": str(work / "train.py")}),
                 Use("Glob", {"pattern": "**/*.py"})]),
        Use("mcp__traindx__list_findings", {"paths": ["log.txt"], "min_severity": "critical"}),
        answer({"ok": True}),
    ]
    notices: list[Notice] = []
    with scripted({"tester": script}) as api:
        reply = await ask(work, tmp_path, settings(api.url), hear=notices.append)
    assert reply.answer == {"ok": True}, reply.failure
    read, grepped, listed, found = (r["content"] for r in results(api.asked[-1].body))
    lines = (work / "train.py").read_text().split("\n")
    assert read.startswith(f"44\t{lines[43]}\n45\t{lines[44]}\n")
    assert "offset=48" in read
    assert grepped.startswith("train.py:")
    assert "np.clip" in grepped
    assert "train.py" in listed.split("\n")
    assert "L101" in found
    assert reply.tokens == 4 * 30
    assert [n.text for n in notices if n.kind == "working" and n.text] == [
        "Read", "Grep", "Glob", "list_findings"]
    kept = next((tmp_path / "scratch" / "conversation").glob("tester-*.jsonl")).read_text()
    assert "list_findings" in kept
    assert "fake-key" not in kept


@pytest.mark.slow
async def test_what_is_sent_is_counted_first_and_marked_for_the_cache(work: Path, tmp_path: Path,
                                                                      settings: Made) -> None:
    notices: list[Notice] = []
    with scripted({"tester": [Use("Glob", {"pattern": "*.py"}), answer({"ok": True})]}) as api:
        made = settings(api.url, token_prices="3,15", effort="low")
        await ask(work, tmp_path, made, hear=notices.append)
    assert [c.role for c in api.counted] == ["tester"]
    counted = tokens_of(api.counted[0].body)
    asked = next(n for n in notices if n.kind == "asked")
    assert f"exactly {counted:,} tokens" in asked.line
    assert f"${counted * 3 / 1e6:.4f}" in asked.line
    for one in api.asked:
        body = one.body
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
        assert sum("cache_control" in b for m in body["messages"] for b in m["content"]) == 1
        assert body["output_config"] == {"effort": "low"}
    assert api.asked[0].body["tools"] == api.asked[1].body["tools"], "the cached part must stay the same"
    assert "Role: tester" in system_text(api.asked[0].body)


async def test_an_answer_is_paid_for_once(work: Path, tmp_path: Path, settings: Made) -> None:
    with scripted({"tester": [answer({"ok": True})]}) as api:
        first = await ask(work, tmp_path, settings(api.url))
        again = await ask(work, tmp_path, settings(api.url))
    assert (first.answer, again.answer, again.remembered) == ({"ok": True}, {"ok": True}, True)
    assert len(api.asked) == len(api.counted) == 1


async def test_an_answer_in_the_wrong_form_goes_back(work: Path, tmp_path: Path, settings: Made) -> None:
    script = [Text("It is fine."), answer({"ok": "yes", "more": 1}), answer({"ok": True})]
    with scripted({"tester": script}) as api:
        reply = await ask(work, tmp_path, settings(api.url))
    assert reply.answer == {"ok": True}, reply.failure
    wrong = results(api.asked[-1].body)[0]
    assert wrong["is_error"]
    assert "answer.ok: expected boolean, got 'yes'" in wrong["content"]
    assert "answer: there is no more" in wrong["content"]
    assert "StructuredOutput" in str(api.asked[1].body["messages"][-1])


async def test_what_was_cut_off_is_asked_for_shorter(work: Path, tmp_path: Path, settings: Made) -> None:
    with scripted({"tester": [Text("and so on", stop_reason="max_tokens"), answer({"ok": True})]}) as api:
        reply = await ask(work, tmp_path, settings(api.url))
    assert reply.answer == {"ok": True}, reply.failure
    assert "cut off" in str(api.asked[-1].body["messages"][-1])


FAILURES: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("a key that is not valid", [Fail(401, "authentication_error", "invalid x-api-key")], {}, "unauthorized"),
    ("no right to the model", [Fail(403, "permission_error")], {}, "unauthorized"),
    ("a model that is not there", [Fail(404, "not_found_error", "model: nothing")], {}, "no-model"),
    ("nobody names a model", [answer({"ok": True})], {"model": ""}, "no-model"),
    ("too many requests", [Fail(429, "rate_limit_error")], {}, "rate-limited"),
    ("overloaded", [Fail(529, "overloaded_error")], {}, "overloaded"),
    ("overloaded after it began", [ErrorInStream()], {}, "overloaded"),
    ("a fault of the server", [Fail(500)], {}, "server-error"),
    ("a request that is not accepted", [Fail(400, "invalid_request_error", "no such field")], {}, "rejected"),
    ("a prompt that is too long", [Fail(400, "invalid_request_error", "prompt is too long: 9 > 3")], {}, "too-long"),
    ("longer than the model reads", [Text("", stop_reason="model_context_window_exceeded")], {}, "too-long"),
    ("a stream that breaks off", [Drop()], {}, "stream-broken"),
    ("a stream that is no stream", [Garbage()], {}, "stream-broken"),
    ("a refusal", [Text("", stop_reason="refusal")], {}, "refused"),
    ("words instead of the form", [Text("I think it is the learning rate.")], {}, "no-answer"),
    ("never the form", [answer({"no": "such key"})], {"turns_each": 40}, "no-answer"),
    ("too many turns", [Use("Glob", {"pattern": "*.py"})], {"turns_each": 2}, "turns"),
]


@pytest.mark.parametrize(("script", "changes", "state"), [f[1:] for f in FAILURES], ids=[f[0] for f in FAILURES])
async def test_a_failure_has_a_state_and_advice(script: list[Any], changes: dict[str, Any], state: str, work: Path,
                                                tmp_path: Path, settings: Made) -> None:
    with scripted({"tester": script}) as api:
        made = settings(api.url, **changes)
        reply = await ask(work, tmp_path, made)
    assert reply.answer is None
    assert reply.failure is not None
    assert reply.failure.state == state, str(reply.failure)
    assert ADVICE[state] in str(reply.failure)


@pytest.mark.parametrize("broken", [Fail(529, "overloaded_error", retry_after="0"), ErrorInStream(), Drop(), Garbage()])
async def test_what_passes_is_tried_again(broken: Any, work: Path, tmp_path: Path, settings: Made,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    left, notices, pauses = [broken, broken], list[Notice](), []
    slept = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await slept(0)

    monkeypatch.setattr("traindx.investigators.messages_api.conversing.asyncio.sleep", noted)
    with scripted({"tester": lambda body: left.pop() if left else answer({"ok": True})}) as api:
        reply = await ask(work, tmp_path, settings(api.url, retries=3), hear=notices.append)
    assert reply.answer == {"ok": True}, reply.failure
    assert len(api.asked) == 3
    assert sum("tried again" in n.line for n in notices) == 2
    assert len(pauses) == 2
    assert pauses == [0.0, 0.0] if isinstance(broken, Fail) else pauses[0] < pauses[1]


def test_pauses_grow_and_the_servers_own_wish_counts() -> None:
    assert [waiting(Exception(), n) for n in range(6)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    error = Exception()
    error.response = type("R", (), {"headers": {"retry-after": "17"}})()  # type: ignore[attr-defined]
    assert waiting(error, 0) == 17.0
    error.response.headers["retry-after"] = "9999"  # type: ignore[attr-defined]
    assert waiting(error, 0) == 60.0


async def test_a_server_that_is_not_there(work: Path, tmp_path: Path, settings: Made) -> None:
    reply = await ask(work, tmp_path, settings("http://127.0.0.1:9"))
    assert reply.failure is not None
    assert reply.failure.state == "unreachable", str(reply.failure)


async def test_without_any_key_it_is_unauthorized(work: Path, tmp_path: Path, settings: Made) -> None:
    reply = await ask(work, tmp_path, settings("", environment={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}))
    assert reply.failure is not None
    assert reply.failure.state == "unauthorized", str(reply.failure)


@pytest.mark.parametrize(("changes", "unit"), [
    ({"tokens_each": 500_000, "tokens_all": 401_000}, "tokens"),
    ({"token_prices": "3,15", "dollars_each": 1.5, "dollars_all": 1.325}, "$"),
])
async def test_the_budget_of_one_question_ends_it(changes: dict[str, Any], unit: str, work: Path, tmp_path: Path,
                                                  settings: Made) -> None:
    with scripted({"tester": [Use("Glob", {"pattern": "*.py"})]}) as api:
        api.usage = {"input_tokens": 195_000, "output_tokens": 5_000}
        made = ours(work, tmp_path, settings(api.url, **changes))
        reply = await made.ask(question(model="m"), 60)
        assert reply.failure is not None
        assert reply.failure.state == "budget-each", str(reply.failure)
        assert unit in reply.failure.detail
        assert len(api.asked) == 2, "the third answer would not fit any more"
        last = await made.ask(question("another", model="m"), 60)
    assert last.failure is not None
    assert last.failure.state == "budget-all", str(last.failure)
    assert unit in last.failure.detail


async def test_what_comes_late_is_not_waited_for_and_counts_as_spent(work: Path, tmp_path: Path,
                                                                     settings: Made) -> None:
    released = threading.Event()
    with scripted({"tester": [Wait(answer({"ok": True}), released)]}) as api:
        made = ours(work, tmp_path, settings(api.url, tokens_each=50_000))
        try:
            reply = await made.ask(question(model="m"), 1.0)
        finally:
            released.set()
    assert reply.failure is not None
    assert reply.failure.state == "late"
    assert made.purse.spent == 50_000
    assert len(asyncio.all_tasks()) == 1, "nothing of it goes on"


async def test_keys_are_taken_out_on_the_way(work: Path, tmp_path: Path, settings: Made) -> None:
    key = "sk-ant-api03-0123456789abcdefghij"
    code = work / "train.py"
    code.write_text(f'{code.read_text()}\nlogin(key="{key}")  # the rest of this line stays\n')
    script = [Use("Read", {"file_path": "train.py"}), Use("Grep", {"pattern": "login", "path": "train.py"}),
              answer({"ok": True})]
    with scripted({"tester": script}) as api:
        await ask(work, tmp_path, settings(api.url))
    sent = str(api.asked[-1].body)
    assert key not in sent
    assert sent.count("the rest of this line stays") == 2


@pytest.mark.slow
async def test_a_pattern_that_never_ends_is_given_up(work: Path, tmp_path: Path, settings: Made,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx.investigators.messages_api.file_tools.SEARCH_SECONDS", 6.0)
    (work / "evil.txt").write_text("a" * 40 + "!\n")
    script = [Use("Grep", {"pattern": "(a+)+$", "path": "evil.txt"}),
              Use("Grep", {"pattern": "(", "path": "evil.txt"}), answer({"ok": True})]
    with scripted({"tester": script}) as api:
        reply = await ask(work, tmp_path, settings(api.url))
    assert reply.answer == {"ok": True}
    slow, wrong = results(api.asked[-1].body)
    assert "took more than" in slow["content"]
    assert "no regular expression" in wrong["content"]


async def test_the_web_is_offered_where_a_person_agreed_and_what_was_fetched_is_a_source(
        work: Path, tmp_path: Path, settings: Made) -> None:
    asked_for = question(tools=("Read", "WebSearch", "WebFetch"), model="m")
    with scripted({"tester": [answer({"ok": True})]}) as api:
        made = ours(work, tmp_path, settings(api.url))
        await made.ask(asked_for, 60)
        assert not any("web" in t["name"] for t in api.asked[-1].body["tools"])
        made.scope = made.scope._replace(web=True)
        await made._once(asked_for, 60, 1e9)
    assert {t["name"] for t in api.asked[-1].body["tools"]} >= {"web_search", "web_fetch"}
