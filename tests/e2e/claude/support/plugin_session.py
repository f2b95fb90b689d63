"""A conversation of the real CLI with this plugin loaded, on a scripted API: a person who types, a model that obeys a
script, and the gate between them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripted_api import Api, scripted

ROOT = Path(__file__).resolve().parents[4]

Answers = Callable[[dict[str, Any]], dict[str, str]]
Agrees = Callable[[str, str], bool]
"""Of the tool's name and the reason that the host gives."""


def environment(home: Path, url: str) -> dict[str, str]:
    """Nothing of this machine but its programs."""
    for folder in (home, home / "tmp"):
        folder.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "config"),
            "CLAUDE_CODE_TMPDIR": str(home / "tmp"), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "fake-key",
            "ANTHROPIC_MODEL": "", "NO_PROXY": "127.0.0.1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_MAX_RETRIES": "0",
            "XDG_STATE_HOME": str(home / "state")}


@dataclass
class Talk:
    """One open conversation."""

    client: Any
    api: Api
    init: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    """What each tool call brought, in order: (text, is it an error)."""

    async def types(self, text: str) -> list[tuple[str, bool]]:
        """The person types; returns what the tool calls of this turn brought."""
        before = len(self.results)
        await self.client.query(text)
        async for message in self.client.receive_response():
            data = getattr(message, "data", None)
            if getattr(message, "subtype", "") == "init" and isinstance(data, dict):
                self.init = data
            content = getattr(message, "content", None)
            for block in content if isinstance(content, list) else ():
                if type(block).__name__ == "ToolResultBlock":
                    self.results.append((str(block.content), bool(block.is_error)))
        return self.results[before:]

    @property
    def heard(self) -> str:
        """Everything that reached the model."""
        return "\n".join(str(a.body.get("messages")) for a in self.api.asked)


@asynccontextmanager
async def talking(work: Path, home: Path, script: Any, answers: Answers | None = None, plugin: Path = ROOT,
                  path: str = "", agrees: Agrees = lambda tool, why: True, **more: Any) -> AsyncIterator[Talk]:
    """A conversation in this workspace. `answers`: what the person answers to the question tool. `agrees`: whether the
    person lets a call pass that the host asks about. `path`: its PATH; `more`: further options of the host."""
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny

    async def allow(tool: str, arguments: dict[str, Any], context: Any) -> Any:
        """The person lets everything pass, unless the test says otherwise: only the gate is left."""
        if tool == "AskUserQuestion" and answers is not None:
            return PermissionResultAllow(updated_input={**arguments, "answers": answers(arguments)})
        if not agrees(tool, str(context.decision_reason or "")):
            return PermissionResultDeny(message="the person says no")
        return PermissionResultAllow(updated_input=arguments)

    with scripted({"": script}) as api:
        settings = environment(home, api.url) | ({"PATH": path} if path else {})
        options = ClaudeAgentOptions(cwd=str(work), env=settings, setting_sources=[],
                                     plugins=[{"type": "local", "path": str(plugin)}], can_use_tool=allow,
                                     **{"permission_mode": "acceptEdits", **more})
        async with ClaudeSDKClient(options) as client:
            yield Talk(client, api)
