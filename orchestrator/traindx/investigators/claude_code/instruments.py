"""The instruments as tools of the SDK, in this process: those of `mcp_tools` that only read."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any

from traindx.investigators.claude_code.sdk import sdk
from traindx.mcp_paths import Reach
from traindx.mcp_tools import TOOLS, Tool, call
from traindx_tools.errors import TraindxError

SERVER = "traindx"
AT_ONCE = 2
"""Instruments of one specialist that work at the same time: they are this machine's work, not the API's."""


def full_name(name: str) -> str:
    """The tool as the model calls it."""
    return f"mcp__{SERVER}__{name}"


def names() -> tuple[str, ...]:
    """Full names of all tools that only read."""
    return tuple(full_name(t.name) for t in TOOLS.values() if t.read_only)


def servers(workspace: Path, offered: Collection[str]) -> dict[str, Any]:
    """The SDK's server with those instruments of these full names that only read, confined to the workspace.

    None for no instruments. Raises BadUsage.
    """
    if not any(name in offered for name in names()):
        return {}
    reach = Reach.of(workspace)
    turn = asyncio.Semaphore(AT_ONCE)
    tools = [_offered(t, reach, turn) for t in TOOLS.values() if t.read_only and full_name(t.name) in offered]
    return {SERVER: sdk().create_sdk_mcp_server(SERVER, tools=tools)}


def _offered(tool: Tool, reach: Reach, turn: asyncio.Semaphore) -> Any:
    async def called(arguments: dict[str, Any]) -> dict[str, Any]:
        async with turn:
            return await asyncio.to_thread(_call, tool.name, arguments, reach)

    return sdk().tool(tool.name, tool.description, tool.definition["inputSchema"])(called)


def _call(name: str, arguments: dict[str, Any], reach: Reach) -> dict[str, Any]:
    try:
        return _text(call(name, arguments, reach, lambda _: None))
    except TraindxError as error:
        return {**_text(str(error)), "is_error": True}
    except Exception as error:  # noqa: BLE001 - a fault of an instrument must not end the conversation
        return {**_text(f"{name} failed inside traindx ({type(error).__name__})"), "is_error": True}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
