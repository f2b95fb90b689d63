"""The instruments and the bench as tools of the SDK, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from traindx.investigators.bench import bench as bench_
from traindx.investigators.bench.bench import AT_ONCE, SERVER, Bench, full_name
from traindx.investigators.claude_code.sdk import sdk
from traindx.mcp_paths import Reach
from traindx.mcp_tools import TOOLS, Tool, call
from traindx_tools.errors import TraindxError

Who = Callable[[str, Mapping[str, Any]], str]
"""Who makes a call with these arguments: the SDK does not tell it to the tool."""


def names() -> tuple[str, ...]:
    """Full names of all tools that only read: the instruments one by one, and the bench's."""
    return (*(full_name(t.name) for t in TOOLS.values() if t.read_only), *bench_.names(runs=False))


def servers(workspace: Path, offered: Collection[str], bench: Bench | None = None,
            who: Who = lambda tool, arguments: "") -> dict[str, Any]:
    """The SDK's server with those tools of these full names that only read, or run protected, in the workspace alone.

    None for no tools. Raises BadUsage.
    """
    reach = Reach.of(workspace)
    turn = asyncio.Semaphore(AT_ONCE)
    tools = [_offered(t, reach, turn) for t in TOOLS.values() if t.read_only and full_name(t.name) in offered]
    if bench is not None:
        tools += [_of_bench(name, told, bench, who) for name, told in bench_.definitions().items()
                  if full_name(name) in offered]
    return {SERVER: sdk().create_sdk_mcp_server(SERVER, tools=tools)} if tools else {}


def _of_bench(name: str, told: Mapping[str, Any], bench: Bench, who: Who) -> Any:
    async def called(arguments: dict[str, Any]) -> dict[str, Any]:
        text, is_error = await bench.use(name, arguments, who(full_name(name), arguments))
        return {**_text(text), "is_error": True} if is_error else _text(text)

    return sdk().tool(name, told["description"], told["inputSchema"])(called)


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
