"""A key that is not valid and an address where nobody listens, with the settings that a person has: at once, and said.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lead_scripts import LEAD
from scripted_api import Fail, answer, scripted

from traindx.investigators.claude import ClaudeInvestigator
from traindx.session import run_debug_session
from traindx.settings import Settings

Made = Callable[..., Settings]
WRONG_KEY = [Fail(401, "authentication_error", "invalid x-api-key")]
RETRIES = Settings().retries


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_asked_with_once(work: Path, settings: Made, status: int) -> None:
    with scripted({LEAD: [Fail(status, "authentication_error", "invalid x-api-key")]}) as api:
        result = await run_debug_session("loss is nan", work, report=False,
                                         investigator=ClaudeInvestigator(settings(api.url, retries=RETRIES)))
    assert "unauthorized" in result.degraded[0]
    assert len(api.asked) == 1
    assert len(api.counted) <= 1


@pytest.mark.slow
async def test_an_address_where_nobody_listens_is_tried_once(work: Path, settings: Made) -> None:
    said: list[str] = []
    investigator = ClaudeInvestigator(settings(closed_port(), retries=RETRIES), lambda n: said.append(n.text))
    result = await run_debug_session("loss is nan", work, report=False, investigator=investigator)
    assert "unreachable" in result.degraded[0]
    assert not [text for text in said if "tried again" in text], "a connection that is refused is no passing trouble"


@pytest.mark.slow
async def test_what_passes_is_still_tried_again(work: Path, settings: Made) -> None:
    busy = [Fail(529, "overloaded_error", retry_after="0"), Fail(429, "rate_limit_error", retry_after="0")]
    with scripted({LEAD: lambda body: busy.pop() if busy else answer({"status": "needs_data"})}) as api:
        await run_debug_session("loss is nan", work, report=False,
                                investigator=ClaudeInvestigator(settings(api.url, retries=RETRIES)))
    assert not busy
    assert len(api.of(LEAD)) > 3


@pytest.mark.parametrize("key", ["wrong", "none"])
async def test_auto_says_why_claude_was_not_reached(work: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx.investigators.claude_code.sdk.installed", lambda: False)
    monkeypatch.setenv("TRAINDX_MODEL", "claude-test-model")
    with scripted({"probe": WRONG_KEY, LEAD: WRONG_KEY}) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url if key == "wrong" else closed_port())
        monkeypatch.setenv("ANTHROPIC_API_KEY", "fake-key")
        begun = time.monotonic()
        result = await run_debug_session("loss is nan", work, report=False, investigator="auto")
        took = time.monotonic() - begun
    assert result.status == "awaiting_approval", result.reason
    assert result.investigators == ("engine",)
    assert result.diagnosis is not None
    assert result.diagnosis.confidence == 0.85
    assert ("unauthorized" if key == "wrong" else "unreachable") in result.degraded[0]
    assert "claude: not-installed" in result.degraded[0]
    assert (Path(result.folder) / "diagnosis.md").read_text().index("Degraded") < 400
    assert len(api.asked) == (1 if key == "wrong" else 0), f"it took {took:.1f} s"
