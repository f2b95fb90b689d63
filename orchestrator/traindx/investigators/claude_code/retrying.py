"""Which requests are not worth repeating: a key that is not valid, an address where nobody answers.

The CLI repeats these as it does what passes, and says so before each pause (`api_retry`). It gives no reason for a
connection that was not made, so the address is tried once beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from traindx.investigators.claude_code.failures import Failure

DENIED = frozenset({401, 402, 403})
CONNECT_SECONDS = 3.0
ADDRESS = "https://api.anthropic.com"
_FIXED_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
              "http_proxy", "ALL_PROXY", "all_proxy")
"""Variables with which the address that is really connected to is not ours to know."""


async def hopeless(message: Any, environment: Mapping[str, str]) -> Failure | None:
    """Why the request that the CLI is about to repeat would end the same way; None for other messages and reasons.

    A login is renewed by the CLI after its first 401; a key from the environment cannot be.
    """
    told = getattr(message, "data", None) or {}
    if getattr(message, "subtype", "") != "api_retry":
        return None
    status, error = told.get("error_status"), str(told.get("error", ""))[:200]
    renewable = not any(environment.get(name) for name in _FIXED_KEYS)
    if status in DENIED and (told.get("attempt", 1) > 1 or not renewable):
        return Failure("unauthorized", f"the API answered {status} ({error})")
    if status is None and (absent := await nobody_at(environment)) is not None:
        return Failure("unreachable", absent)
    return None


async def nobody_at(environment: Mapping[str, str]) -> str | None:
    """Why no connection to the API's address can be made, where that is certain: refused, or a name that is none."""
    if any(environment.get(name, "") not in ("", "0") for name in _ELSEWHERE):
        return None
    address = urlsplit(environment.get("ANTHROPIC_BASE_URL") or ADDRESS)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address.hostname, port), CONNECT_SECONDS)
    except (OSError, asyncio.TimeoutError) as failed:
        return f"{address.hostname}:{port}: {failed}" if certain(failed) else None
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return None


def certain(error: BaseException) -> bool:
    """True for a connection that was refused, and for a name that is known not to exist, anywhere behind an error."""
    return any(isinstance(e, ConnectionRefusedError) or (
        isinstance(e, socket.gaierror) and e.errno == socket.EAI_NONAME) for e in _behind(error, set()))


def _behind(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """The error, what caused it, and the members of groups."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    for inner in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        yield from _behind(inner, seen)
