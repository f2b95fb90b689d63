"""Whole sessions over the Messages API: from symptom to verified fix, side by side, three strikes, nothing paid twice.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers_for import specialist
from fixed_prompts import FIRST_OF_A_SPECIALIST, QUESTION, WHOLE_SESSION, fixed
from lead_scripts import LEAD, asked_now, conversation, held_back, open_answer
from one_case import FIXED, LINE, SPECIALISTS, VERIFY, deciding, line_of, scripts
from scripted_api import Api, Fail, Several, Use, answer, scripted, tokens_of

from traindx.agents import SPECIALISTS as ALL_SPECIALISTS
from traindx.investigators.choose import chosen
from traindx.investigators.claude import ClaudeInvestigator
from traindx.investigators.claude_code.fixing import ClaudeFixer
from traindx.model import Decision
from traindx.notices import Hear, nobody
from traindx.session import resume_session, run_debug_session
from traindx.session_result import SessionResult
from traindx.settings import Settings

Made = Callable[..., Settings]


async def run(work: Path, settings: Settings, *answers: str, hear: Hear = nobody) -> SessionResult:
    return await run_debug_session(
        "loss is nan", work, verify=VERIFY, allow_run=True, approve=deciding(*answers), report=False,
        investigator=ClaudeInvestigator(settings, hear), fixer=ClaudeFixer(work, settings, hear))


@pytest.mark.slow
async def test_from_the_symptom_to_a_verified_fix(work: Path, settings: Made) -> None:
    with scripted(scripts(work)) as api:
        result = await run(work, settings(api.url), "B")
    assert result.status == "fixed", result.reason
    assert FIXED in (work / "train.py").read_text()
    assert api.roles == {LEAD, *SPECIALISTS, "adversary", "fix-author", "fix-reviewer"}
    assert result.diagnosis is not None
    ours = [e for e in result.diagnosis.evidence if e.source == "read by data-flow-tracer"]
    assert [(e.place, e.value, e.strength) for e in ours] == [
        (f"train.py:{line_of(work, LINE)}", LINE.strip(), "derived")]
    assert "4 claims did not stand the check" in result.diagnosis.root_cause
    assert result.investigators == ("engine", "lead", *sorted(SPECIALISTS), "adversary")
    assert result.degraded == ()
    assert "its distance from one 0.0" in (Path(result.folder) / "evidence" / "outputs" / "P001.txt").read_text()


@pytest.mark.slow
async def test_the_fixed_prompts_of_a_whole_session_are_counted_and_bounded(work: Path, settings: Made) -> None:
    with scripted(scripts(work)) as api:
        result = await run(work, settings(api.url), "B")
    assert result.status == "fixed", result.reason
    counted = fixed(api.asked)
    print(f"fixed prompts of a whole session over the API: {sum(counted.values()):,} tokens", counted)
    assert set(counted) == {LEAD, *SPECIALISTS, "adversary", "fix-author", "fix-reviewer"}
    assert sum(counted.values()) < WHOLE_SESSION, counted
    assert {c.role for c in api.counted} >= {LEAD, "adversary"}, "a prompt is counted before it is sent"


@pytest.mark.slow
async def test_the_first_request_of_every_specialist_is_bounded(work: Path, settings: Made) -> None:
    assert len(QUESTION.split()) >= 60
    asks = Several([Use("Agent", {"subagent_type": a, "description": "look", "prompt": QUESTION.format(n=a)})
                    for a in ALL_SPECIALISTS])
    silent = {a: specialist(a, status="not_found") for a in ALL_SPECIALISTS}
    lead = conversation(look=[asks, open_answer()], otherwise=[open_answer()])
    with scripted(scripts(work, **silent, **{LEAD: lead})) as api:
        await run(work, settings(api.url, concurrency=6), "later")
    first = {a: tokens_of(api.of(a)[0].body) for a in ALL_SPECIALISTS}
    assert max(first.values()) < FIRST_OF_A_SPECIALIST * 2 / 3, first


def without_marks(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The contents without the marks for the cache, which move on."""
    return [[{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]] for m in messages]


@pytest.mark.slow
async def test_lead_specialists_and_adversary_share_a_cached_prefix(work: Path, settings: Made) -> None:
    with scripted(scripts(work)) as api:
        await run(work, settings(api.url), "later")
    first = {a.role: a.body for a in reversed(api.asked)}
    shared = [t for t in first[SPECIALISTS[0]]["tools"] if t["name"] != "StructuredOutput"]
    assert len(shared) >= 4, "lead and adversary have experiments besides"
    for role in (LEAD, *SPECIALISTS, "adversary"):
        assert first[role]["tools"][:len(shared)] == shared
        assert first[role]["system"][0] == first["adversary"]["system"][0]
        assert first[role]["system"][0]["cache_control"] == {"type": "ephemeral"}
    stages = {asked_now(a.body): a.body for a in api.of(LEAD)}
    assert list(stages) == ["look", "facts", "guess"]
    for earlier, later in itertools.pairwise(stages.values()):
        assert (earlier["tools"], earlier["system"]) == (later["tools"], later["system"])
        known, after = (without_marks(body["messages"]) for body in (earlier, later))
        assert after[:len(known)] == known, "what was said is sent as it was, and read from the cache"


@pytest.mark.slow
async def test_a_revision_goes_on_with_what_was_said(work: Path, settings: Made) -> None:
    with scripted(scripts(work)) as api:
        result = await run(work, settings(api.url), "revise", "later")
    assert result.status == "awaiting_approval", result.reason
    assert [asked_now(a.body) for a in api.of(LEAD)] == ["look", "facts", "facts", "guess", "news"]
    assert all(len(api.of(s)) <= 3 for s in SPECIALISTS), "nobody looks at the same again"
    assert len(api.of("adversary")) == 2, "the same diagnosis is not attacked and paid for again"
    last = api.of(LEAD)[-1].body
    assert str(last["messages"]).count("# The case") == 1
    assert "look closer, by the whole protocol" in str(last["messages"][-1])


@pytest.mark.slow
async def test_specialists_are_at_work_at_the_same_time(work: Path, settings: Made) -> None:
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


@pytest.mark.slow
async def test_three_strikes_in_a_workspace_halt_the_session(work: Path, settings: Made) -> None:
    """A diff that failed twice in the folder is not offered again: the third fix is the person's own."""
    code = (work / "train.py").read_text()
    statuses = []
    with scripted(scripts(work, **{LEAD: conversation(otherwise=[open_answer()])})) as api:
        for _ in range(3):
            result = await run_debug_session(
                "loss is nan", work, verify="exit 1", allow_run=True, report=False,
                approve=lambda d: Decision(verdict="approve", diagnosis_digest=d.digest(), option="A"),
                investigator=ClaudeInvestigator(settings(api.url)))
            statuses.append(result.status)
            assert (work / "train.py").read_text() == code, "a failed fix is taken back"
        assert statuses[-1] == "awaiting_edit", statuses
        (work / "train.py").write_text(code.replace("EPS = 1e-12", "EPS = 1e-5"))
        result = await resume_session(result.folder, report=False, investigator=ClaudeInvestigator(settings(api.url)))
    assert result.status == "three_strikes", result.reason
    assert "strike_report.md" in result.documents


@pytest.mark.slow
async def test_a_session_that_was_killed_pays_nothing_twice(work: Path, settings: Made) -> None:
    released = threading.Event()
    slow = {"torch-logic-auditor": held_back(scripts(work)["torch-logic-auditor"], released)}
    with scripted(scripts(work, **slow)) as api:
        made = settings(api.url)
        await asyncio.to_thread(_killed_when_two_have_reported, work, made)
        folder = next((work / "scratch" / "debug").glob("*/journal.jsonl")).parent
        released.set()
        result = await resume_session(folder, approve=deciding("later"), report=False,
                                      investigator=ClaudeInvestigator(made))
    assert [asked_now(a.body) for a in api.of(LEAD)].count("look") == 1, "the first look is not paid again"
    assert result.status == "awaiting_approval", result.reason
    assert result.degraded == ()
    ledger = [json.loads(line) for line in (folder / "conversation" / "spent-tokens.jsonl").read_text().splitlines()]
    begun, ended = ({e["n"] for e in ledger if e["what"] == what} for what in ("set-aside", "spent"))
    assert len(begun - ended) == 1, "what was under way counts as spent"


def _killed_when_two_have_reported(work: Path, made: Settings) -> None:
    script = Path(__file__).parents[1] / "claude" / "support" / "drive_session.py"
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


@pytest.mark.slow
async def test_a_session_without_an_answer_delivers_the_offline_diagnosis(work: Path, settings: Made) -> None:
    unauthorized = [Fail(401, "authentication_error", "invalid x-api-key")]
    with scripted({LEAD: unauthorized}) as api:
        result = await run(work, settings(api.url), "later")
    assert result.status == "awaiting_approval", result.reason
    assert result.diagnosis is not None
    assert result.investigators == ("engine",)
    assert [d.partition(": ")[::2][0] for d in result.degraded] == ["lead", "unchallenged"]
    assert "unauthorized" in result.degraded[0]
    assert result.diagnosis.confidence == 0.85
    assert len(api.asked) == 1, "after a key that is not valid nobody else is asked"


def debug(work: Path, settings: Settings, *more: str) -> tuple[dict[str, object], str]:
    """The session's result and what was said beside it."""
    environment = {**os.environ, **settings.environment, "TRAINDX_RETRIES": "0"}
    done = subprocess.run([sys.executable, "-m", "traindx", "debug", ".", "--symptom", "loss is nan", "--json", *more],
                          cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=110,
                          stdin=subprocess.DEVNULL)
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.slow
def test_the_command_says_who_is_asked_and_goes_on_with_them(work: Path, settings: Made) -> None:
    with scripted(scripts(work)) as api:
        made = settings(api.url)
        waiting, told = debug(work, made, "--backend", "api", "--model", "claude-test-model", "--verify", VERIFY)
        assert waiting["status"] == "awaiting_approval"
        assert "Investigating with Claude (claude-test-model over the Messages API), at most 2,000,000 tokens" in told
        assert "adversary: asked (exactly" in told
        assert "adversary: answered" in told
        done = subprocess.run([sys.executable, "-m", "traindx", "approve", str(waiting["session"]), "--option", "B"],
                              cwd=work, env={**os.environ, **made.environment}, capture_output=True, text=True,
                              check=False, timeout=110, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert "fix-author: answered" in done.stderr
    assert FIXED in (work / "train.py").read_text()


@pytest.mark.slow
def test_without_a_model_the_command_says_what_to_name(work: Path, settings: Made) -> None:
    _, told = debug(work, settings("http://127.0.0.1:9"), "--backend", "api")
    assert "no default model" in told
    assert "--model" in told


async def test_auto_takes_the_api_where_the_cli_is_not_installed(work: Path, settings: Made,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx.investigators.claude_code.sdk.installed", lambda: False)
    with scripted({"probe": [answer({"ok": True})]}) as api:
        taken = await chosen(work, settings(api.url, backend="auto"))
    assert taken.investigator.name == "claude"
    assert "over the Messages API" in taken.said
