"""One conversation over the Messages API: ask, let the model use its tools, until it hands its answer over.

Every request is streamed. What fails for a passing reason is repeated with growing pauses; an address where nobody
listens is not. What is fixed (tools, system text) and what was said so far is marked for the API's prompt cache. A
thread begins with what was said in it before.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from traindx.answer_schema import complaints
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.guard import STRUCTURED_OUTPUT
from traindx.investigators.claude_code.retrying import certain
from traindx.investigators.messages_api import client as api
from traindx.investigators.messages_api.toolbox import Toolbox
from traindx.investigators.messages_api.usage import used_by

MOST_OUTPUT = 8_192
"""Tokens of one answer of the model; a report has about 2,000."""
WRONG_FORMS = 5
"""Answers that do not have the asked form, then it is given up."""
NUDGES = 2
"""Reminders that the answer goes through its tool."""

ROLE = "Role: "
"""Begins what is of one role alone in a system text; what stands before it is shared, and cached, by all."""
_CACHED = {"type": "ephemeral"}
_BETA = {"anthropic-beta": "web-fetch-2025-09-10"}
_REMIND = f"Your answer counts only through the tool {STRUCTURED_OUTPUT}: call it now, with all its fields."
_SHORTER = f"Your last message was cut off for its length. Call {STRUCTURED_OUTPUT} with a shorter answer."

Account = Callable[[dict[str, int]], "Failure | None"]
"""Told what each answer took; a failure where the next request may not be made any more."""


@dataclass
class Conversation:
    """The messages so far. `say` hears why a request is repeated."""

    client: Any
    model: str
    question: Question
    toolbox: Toolbox
    effort: str
    turns: int
    retries: int
    account: Account
    note: Callable[[str, Any], None]
    say: Callable[[str], None]
    messages: list[dict[str, Any]] = field(default_factory=list)
    """What was said in the thread before; then all that is said."""
    fetched: list[str] = field(default_factory=list)
    _wrong: int = 0
    _nudged: int = 0

    async def run(self) -> dict[str, Any] | Failure:
        """The answer in its form, or why there is none. Raises CancelledError alone."""
        self.messages = [*self.messages, {"role": "user", "content": self.begun()}]
        for _ in range(self.turns):
            message = await self._reply()
            if isinstance(message, Failure):
                return message
            self.note("assistant", message.model_dump(mode="json"))
            self.fetched += _fetched(message)
            over = self.account(used_by(message))
            settled = await self._take(message)
            if settled is not None:
                return settled
            if over is not None:
                return over
        return Failure("turns", f"no answer after {self.turns} turns")

    def begun(self) -> list[dict[str, Any]]:
        """What the person's side says first."""
        return [*_taken(self.messages), {"type": "text", "text": self.question.prompt}]

    async def _take(self, message: Any) -> dict[str, Any] | Failure | None:
        """An end, or None where the conversation goes on."""
        if message.stop_reason == "refusal":
            return Failure("refused", "the model declined to answer")
        if message.stop_reason == "model_context_window_exceeded":
            return Failure("too-long", "the conversation is longer than the model can read")
        content = [_plain(b) for b in message.content]
        if message.stop_reason == "max_tokens":
            return self._nudge([b for b in content if b["type"] == "text"], _SHORTER)
        calls = [b for b in content if b["type"] == "tool_use"]
        if message.stop_reason == "pause_turn":
            self.messages.append({"role": "assistant", "content": content})
            return None
        if not calls:
            return self._nudge(content, _REMIND)
        return await self._answer_or_use(content, calls)

    async def _answer_or_use(self, content: list[dict[str, Any]],
                             calls: list[dict[str, Any]]) -> dict[str, Any] | Failure | None:
        wrong: dict[str, str] = {}
        for call in calls:
            if call["name"] == STRUCTURED_OUTPUT:
                said = complaints(call["input"], self.question.schema)
                if not said:
                    answer: dict[str, Any] = call["input"]
                    self.messages.append({"role": "assistant", "content": content})
                    return answer
                self._wrong += 1
                wrong[call["id"]] = "; ".join(said[:8])
        if self._wrong >= WRONG_FORMS:
            last = next(iter(wrong.values()))
            return Failure("no-answer", f"{self._wrong} answers did not have the asked form: {last}")
        used = await asyncio.gather(*(self._used(c, wrong.get(c["id"])) for c in calls))
        self.messages.append({"role": "assistant", "content": content})
        self.messages.append({"role": "user", "content": list(used)})
        self.note("tools", list(used))
        return None

    async def _used(self, call: dict[str, Any], wrong: str | None) -> dict[str, Any]:
        arguments = call["input"] if isinstance(call["input"], dict) else {}
        text, is_error = (wrong, True) if wrong is not None else await self.toolbox.use(call["name"], arguments)
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text or "(nothing)", "is_error": is_error}

    def _nudge(self, content: list[dict[str, Any]], words: str) -> Failure | None:
        self._nudged += 1
        if self._nudged > NUDGES:
            return Failure("no-answer", "the conversation ended without an answer in the asked form")
        said = [b for b in content if b["type"] != "text" or b["text"].strip()]
        self.messages.append({"role": "assistant", "content": said or [{"type": "text", "text": "(nothing)"}]})
        self.messages.append({"role": "user", "content": [{"type": "text", "text": words}]})
        return None

    async def _reply(self) -> Any:
        """The model's next message, or the failure that the last try ended in."""
        for attempt in range(self.retries + 1):
            try:
                async with self.client.messages.stream(**self.request()) as stream:
                    return await stream.get_final_message()
            except Exception as error:  # noqa: BLE001 - whatever the package or its transport raises ends in a state
                failure = api.of_exception(error)
                if failure.state not in api.PASSING or certain(error) or attempt == self.retries:
                    return failure
                pause = api.waiting(error, attempt) * random.uniform(0.75, 1.0)
                self.say(f"{failure.state}, tried again in {pause:.1f} s")
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns")

    def request(self) -> dict[str, Any]:
        """What is sent, with the marks for the cache: after the fixed part and after all that was said so far."""
        extra: dict[str, Any] = {"output_config": {"effort": self.effort}} if self.effort else {}
        if any(t.get("name") == "web_fetch" for t in self.toolbox.definitions):
            extra["extra_headers"] = _BETA
        return {"model": self.model, "max_tokens": MOST_OUTPUT, **self.fixed(), "messages": _marked(self.messages),
                **extra}

    def fixed(self) -> dict[str, Any]:
        """Tools and system text: the same in every request of this conversation."""
        shared, mark, role = self.question.system.partition(ROLE)
        texts = [shared.rstrip(), mark + role] if mark and shared.strip() else [self.question.system]
        return {"tools": self.toolbox.definitions,
                "system": [{"type": "text", "text": t, "cache_control": _CACHED} for t in texts]}


def _taken(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results for the calls of the last message, the one that handed an answer over among them: the API wants them."""
    last = messages[-1]["content"] if messages and messages[-1]["role"] == "assistant" else []
    return [{"type": "tool_result", "tool_use_id": b["id"], "content": "taken"} for b in last
            if b.get("type") == "tool_use"]


def _marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not messages or not messages[-1]["content"]:
        return messages
    *before, last = messages
    *blocks, end = last["content"]
    return [*before, {**last, "content": [*blocks, {**end, "cache_control": _CACHED}]}]


def _plain(block: Any) -> dict[str, Any]:
    """A block as the API takes it back: without what the package adds of its own."""
    plain: dict[str, Any] = block.model_dump(mode="json", exclude_none=True)
    if plain["type"] == "text":
        return {"type": "text", "text": plain["text"]}
    if plain["type"] == "tool_use":
        return {k: plain.get(k) for k in ("type", "id", "name", "input")}
    return plain


def _fetched(message: Any) -> list[str]:
    """Addresses that the API's own tool really fetched."""
    out = []
    for block in message.content:
        content = getattr(block, "content", None)
        url = getattr(content, "url", None)
        if block.type == "web_fetch_tool_result" and isinstance(url, str):
            out.append(url)
    return out
