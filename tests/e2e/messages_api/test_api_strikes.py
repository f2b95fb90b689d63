"""Strikes within one session, and a specialist's own probe, over the Messages API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from one_case import deciding
from scripted_api import scripted
from strike_scripts import check_probe, check_strikes, probing_specialist, two_causes

from traindx.investigators.claude import ClaudeInvestigator
from traindx.session import run_debug_session
from traindx.settings import Settings

pytestmark = pytest.mark.slow
Made = Callable[..., Settings]


async def test_a_strike_is_news_in_the_same_conversation(work: Path, settings: Made) -> None:
    code = (work / "train.py").read_text()
    with scripted(two_causes(work)) as api:
        result = await run_debug_session("loss is nan", work, verify="exit 1", allow_run=True, report=False,
                                         approve=deciding("A", "A", "later", "later"),
                                         investigator=ClaudeInvestigator(settings(api.url)))
    check_strikes(result, api, work, code)


async def test_a_specialists_probe_counts_under_its_name(work: Path, settings: Made) -> None:
    with scripted(probing_specialist(work)) as api:
        result = await run_debug_session("loss is nan", work, allow_run=True, report=False,
                                         investigator=ClaudeInvestigator(settings(api.url)))
    check_probe(result)
