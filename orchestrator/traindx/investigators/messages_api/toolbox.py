"""The tools of one conversation: what the API is told of them, the policy's judgement of each call, and the answer.

A call that the policy refuses is never made. What comes back is bounded, and keys in it are taken out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.guard import STRUCTURED_OUTPUT, judge
from traindx.investigators.claude_code.instruments import AT_ONCE, full_name
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


_HANDS_OVER = "Hands the answer over and ends the conversation. Every field of every object is required."
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
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """For the API: reading, the instruments, the web where agreed, and the form of the answer."""
        offered: list[dict[str, Any]] = [{"name": n, **d} for n, d in file_tools.DEFINITIONS.items()
                                         if n in self.question.tools]
        offered += [{"name": n, "description": t.description, "input_schema": slim(t.definition["inputSchema"])}
                    for n, t in INSTRUMENTS.items() if n in self.question.tools]
        offered += [dict(d) for n, d in ON_THE_WEB.items() if n in self.question.tools and self.scope.web]
        return [*offered, {"name": STRUCTURED_OUTPUT, "description": _HANDS_OVER,
                           "input_schema": slim(self.question.schema)}]

    async def use(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """What the call brought, and whether it is an error. Raises nothing."""
        verdict = self._judged(name, arguments)
        self.told(name, arguments, verdict)
        if not verdict.allow:
            return f"traindx refuses: {verdict.reason}. Instead: {verdict.next_step}.", True
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
        offered = name in self.question.tools and (name in file_tools.TOOLS or name in INSTRUMENTS)
        if verdict.allow and not offered:
            return Verdict(False, f"the tool {name!r} was not offered", "use the tools that are offered")
        return verdict

    async def _called(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name in file_tools.TOOLS:
            return await file_tools.TOOLS[name](arguments, self.workspace)
        reach = Reach.of(self.workspace)
        return await asyncio.to_thread(call, INSTRUMENTS[name].name, dict(arguments), reach, lambda _: None)
