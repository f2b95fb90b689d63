"""The lead with the real CLI: it finds by probe what no instrument knows, whatever the engine holds; who challenges it,
who dissents, and what is sent only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hard_cases import (
    COUNT_NAN,
    FELL_OUT,
    proof,
    silent_shuffle,
    wrong_engine,
)
from lead_scripts import (
    LEAD,
    PROBE,
    cause,
    checks,
    conversation,
    last_output,
)
from scripted_api import Use, scripted
from sure_engine import SureEngine

from traindx.investigators.claude import ClaudeInvestigator
from traindx.session import run_debug_session
from traindx.session_result import SessionResult
from traindx.settings import Settings

pytestmark = pytest.mark.slow
Made = Callable[..., Settings]
NAN = FELL_OUT
COUNTED = "readings that are not finite: 1 of 96000"
MOVED = "labels that agree with the rule of their own row: 0.5"
MODE = "data.reading-fell-out"


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A run whose data hold one reading that is not a number."""
    return wrong_engine(tmp_path / "failed")


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """A run that learns nothing, for its labels belong to other rows."""
    return silent_shuffle(tmp_path / "silent")


async def run(work: Path, settings: Settings, approve: Any = None, **more: Any) -> SessionResult:
    investigator = ClaudeInvestigator(settings, **({"offline": more.pop("offline")} if "offline" in more else {}))
    return await run_debug_session(more.pop("symptom", "loss is nan"), work, allow_run=True, report=False,
                                   approve=approve, investigator=investigator, **more)


def finds(work: Path, text: str, code: str, quote: str, mode: str, **more: Any) -> Any:
    """A lead that runs one probe at its first look, and stays with what it showed."""

    def proven(body: Mapping[str, Any]) -> list[Any]:
        return [cause(work, text, mode, proof(last_output(body), quote, "counted in the data"), **more)]

    return conversation(look=lambda body: [Use(PROBE, {"code": code}), *proven(body)], otherwise=proven)


async def test_a_wrong_engine_and_a_right_model_end_with_the_right_cause(failed: Path, settings: Made) -> None:
    lead = finds(failed, NAN, COUNT_NAN, COUNTED, MODE, edit="")
    supports = checks("gradient with the row: nan without:", COUNT_NAN, found=False)
    with scripted({LEAD: lead, "adversary": supports}) as api:
        result = await run(failed, settings(api.url), offline=SureEngine())
    assert result.status == "awaiting_approval", result.reason
    made = result.diagnosis
    assert made is not None
    assert made.failure_mode == MODE
    assert made.confidence >= 0.85
    assert any("loss.log-of-zero (0." in d for d in made.dissent), "the engine's guess is told beside it"
    assert {e.strength for e in made.evidence} == {"ran"}
    assert result.investigators == ("engine", "lead", "adversary")
    assert result.degraded == ()
    shown = (Path(result.folder) / "diagnosis.md").read_text()
    assert "**Dissent**" in shown
    assert "log-of-zero" in shown
