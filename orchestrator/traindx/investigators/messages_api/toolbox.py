"""The tools of one conversation: what the API is told of them, the policy's judgement of each call, and the answer.

A call that the policy refuses is never made. What comes back is bounded, and keys in it are taken out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.investigators.bench import bench as bench_
from traindx.investigators.bench.bench import AT_ONCE, Bench, full_name
from traindx.investigators.claude_code.asking import SEND
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.guard import STRUCTURED_OUTPUT, judge
from traindx.investigators.claude_code.redaction import redacted
from traindx.investigators.messages_api import file_tools
from traindx.mcp_paths import Reach
from traindx.mcp_tools import TOOLS, call
from traindx.policy import Scope, Verdict
from traindx.safe_text import block
from traindx_tools.errors import TraindxError

INSTRUMENTS = {full_name(t.name): t for t in TOOLS.values() if t.read_only}

ON_THE_WEB: dict[str, dict[str, Any]] = {
    "WebSearch": {"type": "web_search_20250305", "name": "web_search", "max_uses": 6},
    "WebFetch": {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 6, "max_content_tokens": 20_000},
}
"""Tools that the API runs itself, only offered where a person agreed to research on the web."""

Told = Callable[[str, Mapping[str, Any], Verdict], None]
Sent = Callable[[str, str], Awaitable[tuple[str, bool]]]
"""Sends a specialist with a prompt; returns what the sender is told, and whether it is an error."""

_SEND = {"description": "Sends a specialist with one question; it knows nothing but your prompt. Several calls in one "
                        "message work side by side.",
         "input_schema": {"type": "object", "required": ["subagent_type", "prompt"], "properties": {
             "subagent_type": {"type": "string"}, "prompt": {"type": "string"}}}}

_HANDS_OVER = {"description": "Hands your answer over, in the form that the prompt shows; every field is required.",
               "input_schema": {"type": "object"}}
"""The same for every role, so that the tools are one cached prefix; the form is checked here."""
_CHECKED_HERE = frozenset({"additionalProperties", "default", "maxItems", "maxLength", "maximum", "minItems", "minimum",
                           "pattern"})
_SAID_BY_THE_ANSWER = frozenset({"max_chars", "offset"})
"""Arguments that an answer names where it was cut."""


def slim(schema: Any) -> Any:
    """The schema without what is checked here anyway: it is sent, and paid for, with every question."""
    if isinstance(schema, list):
        return [slim(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [s for s in schema.get("anyOf", ()) if s.get("type") != "null"]
    if len(kinds) == 1:
        schema = {**{k: v for k, v in schema.items() if k != "anyOf"}, **kinds[0]}
    return {k: {n: slim(s) for n, s in v.items() if n not in _SAID_BY_THE_ANSWER} if k == "properties" else slim(v)
            for k, v in schema.items() if k not in _CHECKED_HERE}


@dataclass
class Toolbox:
    """The tools that one question may use."""

    question: Question
    workspace: Path
    scope: Scope
    phase: str
    told: Told
    bench: Bench | None = None
    send: Sent | None = None
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """For the API, what roles share first: reading, the bench, instruments, the web, specialists, the answer."""
        offered: list[dict[str, Any]] = [{"name": n, **d} for n, d in file_tools.DEFINITIONS.items()
                                         if n in self.question.tools]
        if self.bench is not None:
            offered += [{"name": full_name(n), "description": d["description"], "input_schema": slim(d["inputSchema"])}
                        for n, d in bench_.definitions().items() if full_name(n) in self.question.tools]
        offered += [{"name": n, "description": t.description, "input_schema": slim(t.definition["inputSchema"])}
                    for n, t in INSTRUMENTS.items() if n in self.question.tools]
        offered += [dict(d) for n, d in ON_THE_WEB.items() if n in self.question.tools and self.scope.web]
        offered += [{"name": SEND, **_SEND}] if self.question.helpers else []
        return [*offered, {"name": STRUCTURED_OUTPUT, **_HANDS_OVER}]

    async def use(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """What the call brought, and whether it is an error. Raises nothing."""
        verdict = self._judged(name, arguments)
        self.told(name, arguments, verdict)
        if not verdict.allow:
            return f"traindx refuses: {verdict.reason}. Instead: {verdict.next_step}.", True
        plain = name.removeprefix(full_name(""))
        if self.bench is not None and name in self.question.tools and plain in bench_.definitions():
            return await self.bench.use(plain, arguments, self.question.who)
        if name == SEND and self.send is not None:
            return await self.send(str(arguments.get("subagent_type")), str(arguments.get("prompt") or ""))
        try:
            async with self._turn:
                return block(redacted(await self._called(name, arguments)), most=120_000), False
        except TraindxError as error:
            return redacted(str(error)), True
        except Exception as error:  # noqa: BLE001 - a fault of a tool must not end the conversation
            return f"{name} failed inside traindx ({type(error).__name__})", True

    def _judged(self, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """A tool that was not offered is refused before the policy is asked: nothing here could make the call."""
        try:
            verdict = judge(name, arguments, self.phase, self.scope)
        except Exception as error:  # noqa: BLE001 - a judgement that fails is a refusal
            return Verdict(False, f"the call could not be judged ({type(error).__name__})", "go on without it")
        plain = name.removeprefix(full_name(""))
        made_here = name in file_tools.TOOLS or name in INSTRUMENTS or (
            self.bench is not None and plain in bench_.definitions())
        offered = (name in self.question.tools and made_here) or (name == SEND and bool(self.question.helpers))
        if verdict.allow and not offered:
            return Verdict(False, f"the tool {name!r} was not offered", "use the tools that are offered")
        return verdict

    async def _called(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name in file_tools.TOOLS:
            return await file_tools.TOOLS[name](arguments, self.workspace)
        reach = Reach.of(self.workspace)
        return await asyncio.to_thread(call, INSTRUMENTS[name].name, dict(arguments), reach, lambda _: None)
