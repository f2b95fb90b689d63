"""Whole sessions with the real CLI: from symptom to verified fix, specialists side by side, nothing paid twice."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from answers_for import specialist
from lead_scripts import LEAD, asked_now, conversation, held_back, open_answer
from one_case import FIXED, LINE, SPECIALISTS, VERIFY, deciding, line_of, scripts
from scripted_api import Api, scripted

from traindx.investigators.claude import ClaudeInvestigator
from traindx.investigators.claude_code.fixing import ClaudeFixer
from traindx.model import Decision
from traindx.notices import as_lines, nobody
from traindx.session import resume_session, run_debug_session
from traindx.session_result import SessionResult
from traindx.settings import Settings

pytestmark = pytest.mark.slow


async def run(work: Path, settings: Settings, *answers: str, said: list[str] | None = None) -> SessionResult:
    told = as_lines(said.append) if said is not None else nobody
    return await run_debug_session(
        "loss is nan", work, verify=VERIFY, allow_run=True, approve=deciding(*answers), report=False,
        investigator=ClaudeInvestigator(settings, told), fixer=ClaudeFixer(work, settings, told))


async def test_from_the_symptom_to_a_verified_fix(work: Path, settings: Callable[..., Settings]) -> None:
    lines: list[str] = []
    with scripted(scripts(work)) as api:
        result = await run(work, settings(api.url), "B", said=lines)
    assert result.status == "fixed", result.reason
    assert FIXED in (work / "train.py").read_text()
    assert api.roles == {LEAD, *SPECIALISTS, "adversary", "fix-author", "fix-reviewer"}
    diagnosis = result.diagnosis
    assert diagnosis is not None
    ours = [e for e in diagnosis.evidence if e.source == "read by data-flow-tracer"]
    assert [(e.place, e.value, e.strength) for e in ours] == [
        (f"train.py:{line_of(work, LINE)}", LINE.strip(), "derived")]
    assert "4 claims did not stand the check" in diagnosis.root_cause
    assert "a probability of one that the clip keeps away from one (looked for, not seen)" in diagnosis.root_cause
    assert diagnosis.confidence <= 0.97
    assert diagnosis.investigators == ("engine", "lead", *sorted(SPECIALISTS), "adversary")
    assert diagnosis.degraded == ()
    folder = Path(result.folder)
    table = (folder / "evidence" / "triangulation.md").read_text().splitlines()
    assert "exact" in table[2]
    assert "critical" in table[2]
    assert "its distance from one 0.0" in (folder / "evidence" / "outputs" / "P001.txt").read_text()
    assert "C107" in (folder / "evidence" / "outputs" / "I001.txt").read_text()
    kept = "".join(p.read_text() for p in (folder / "conversation").iterdir() if p.is_file())
    assert "fake-key" not in kept
    assert any(line.startswith("data-flow-tracer: 1 claims stand, 4 were dropped") for line in lines)
    told = str(api.of(LEAD)[2].body["messages"])
    assert "checked, for loss.log-of-zero" in told, "the lead is told what of a report stands"
    assert "dropped: " in told


async def test_specialists_are_at_work_at_the_same_time(work: Path, settings: Callable[..., Settings]) -> None:
    meeting = threading.Event()

    def all_there(api: Api) -> None:
        if sum(api.in_flight[s] for s in SPECIALISTS) == len(SPECIALISTS):
            meeting.set()

    held = {name: held_back(specialist(name, status="not_found"), meeting) for name in SPECIALISTS}
    with scripted(scripts(work, **held)) as api:
        api.together = all_there
        result = await run(work, settings(api.url), "later")
    assert result.status == "awaiting_approval", result.reason
    assert meeting.is_set(), "they were never on their way together"
    first = [api.of(s)[0] for s in SPECIALISTS]
    assert all(max(a.begun, b.begun) < min(a.ended, b.ended) for a, b in itertools.combinations(first, 2))


async def test_no_more_of_them_than_allowed(work: Path, settings: Callable[..., Settings]) -> None:
    with scripted(scripts(work)) as api:
        await run(work, settings(api.url, concurrency=1), "later")
    assert api.most_at_once == 1, "the CLI refuses a second one; the lead may send it afterwards"
    assert set(SPECIALISTS) & api.roles


async def test_a_session_that_was_killed_pays_nothing_twice(work: Path, settings: Callable[..., Settings]) -> None:
    released = threading.Event()
    slow = {"torch-logic-auditor": held_back(scripts(work)["torch-logic-auditor"], released)}
    with scripted(scripts(work, **slow)) as api:
        made = settings(api.url)
        await asyncio.to_thread(_killed_when_two_have_reported, work, made)
        looked = [a for a in api.of(LEAD) if asked_now(a.body) == "look"]
        folder = next((work / "scratch" / "debug").glob("*/journal.jsonl")).parent
        released.set()
        result = await resume_session(folder, approve=deciding("later"), report=False,
                                      investigator=ClaudeInvestigator(made))
        assert [a for a in api.of(LEAD) if asked_now(a.body) == "look"] == looked, "the first look is not paid again"
    assert result.status == "awaiting_approval", result.reason
    assert result.degraded == ()
    ledger = [json.loads(line) for line in (folder / "conversation" / "spent.jsonl").read_text().splitlines()]
    begun, ended = ({e["n"] for e in ledger if e["what"] == what} for what in ("set-aside", "spent"))
    assert len(begun - ended) == 1, "what was under way counts as spent"


def _killed_when_two_have_reported(work: Path, made: Settings) -> None:
    script = Path(__file__).parent / "support" / "drive_session.py"
    child = subprocess.Popen([sys.executable, str(script), str(work), json.dumps(dataclasses.asdict(made))],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 90
        while sum(len(p.read_text().splitlines()) for p in work.glob("scratch/debug/*/conversation/reports.jsonl")) < 2:
            assert child.poll() is None, "the session ended before it could be killed"
            assert time.monotonic() < until, "two specialists should have reported by now"
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()


async def test_failed_fixes_of_a_workspace_count_until_the_cause_is_not_believed(
    work: Path, settings: Callable[..., Settings]
) -> None:
    """Two sessions whose fix failed count as two strikes; the third does not reach the gate with the same cause."""
    code = (work / "train.py").read_text()
    results = []
    with scripted(scripts(work, **{LEAD: conversation(otherwise=[open_answer()])})) as api:
        for _ in range(3):
            results.append(await run_debug_session(
                "loss is nan", work, verify="echo step 1 loss nan; exit 1", allow_run=True, report=False,
                approve=lambda d: Decision(verdict="approve", diagnosis_digest=d.digest(), option="A"),
                investigator=ClaudeInvestigator(settings(api.url))))
            assert (work / "train.py").read_text() == code, "a failed fix is taken back"
    assert [(r.status, len(r.attempts)) for r in results] == [("needs_more_data", 1)] * 2 + [("needs_more_data", 0)]
    assert [r.strikes for r in results[:2]] == [1, 2]
    assert "was tried 2 times before in this folder and failed" in results[-1].reason
