"""What is not worth a second request, and what is: by the CLI's own announcements, and by the error behind errors."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from traindx.investigators.claude_code.retrying import certain, hopeless, nobody_at

KEY = {"ANTHROPIC_API_KEY": "fake"}


def about_to_repeat(status: int | None, attempt: int = 1) -> SimpleNamespace:
    return SimpleNamespace(subtype="api_retry", data={"error_status": status, "attempt": attempt, "error": "because"})


@pytest.fixture
def closed() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_key_is_not_tried_twice(status: int) -> None:
    failure = await hopeless(about_to_repeat(status), KEY)
    assert failure is not None
    assert failure.state == "unauthorized"
    assert str(status) in failure.detail


async def test_a_login_may_be_renewed_once() -> None:
    assert await hopeless(about_to_repeat(401), {}) is None
    assert await hopeless(about_to_repeat(401, attempt=2), {}) is not None


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_what_passes_is_left_to_the_cli(status: int) -> None:
    assert await hopeless(about_to_repeat(status, attempt=3), KEY) is None


async def test_other_messages_say_nothing() -> None:
    assert await hopeless(SimpleNamespace(subtype="init", data={"error_status": 401}), KEY) is None
    assert await hopeless(SimpleNamespace(content=[]), KEY) is None
    assert await hopeless(SimpleNamespace(subtype="api_retry", data=None), {"HTTPS_PROXY": "http://p"}) is None


async def test_a_refused_connection_is_told_from_one_that_broke(closed: str, listening: str) -> None:
    failure = await hopeless(about_to_repeat(None), {**KEY, "ANTHROPIC_BASE_URL": closed})
    assert failure is not None
    assert failure.state == "unreachable"
    assert await hopeless(about_to_repeat(None), {**KEY, "ANTHROPIC_BASE_URL": listening}) is None


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "CLAUDE_CODE_USE_BEDROCK"])
async def test_behind_a_proxy_or_elsewhere_nothing_is_concluded(variable: str, closed: str) -> None:
    assert await nobody_at({"ANTHROPIC_BASE_URL": closed, variable: "http://proxy:3128"}) is None


def test_the_reason_is_found_behind_other_errors() -> None:
    outer = RuntimeError("Connection error.")
    outer.__cause__ = OSError("all attempts failed")
    assert not certain(outer)
    outer.__cause__.__cause__ = ConnectionRefusedError(111, "refused")
    assert certain(outer)
    assert certain(socket.gaierror(socket.EAI_NONAME, "no such name"))
    assert not certain(socket.gaierror(socket.EAI_AGAIN, "not now"))
    outer.__cause__.__cause__ = outer
    assert not certain(outer), "errors that lead to themselves end"
