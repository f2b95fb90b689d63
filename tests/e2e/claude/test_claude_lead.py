"""The lead with the real CLI: it finds by probe what no instrument knows, whatever the engine holds; who challenges it,
who dissents, and what is sent only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from answers_for import doubt, specialist
from fixed_prompts import FIRST_OF_A_SPECIALIST, FRAME, QUESTION, WHOLE_SESSION, fixed
from hard_cases import (
    COUNT_MOVED,
    COUNT_NAN,
    FELL_OUT,
    MEASURE_CLIP,
    SHUFFLED,
    proof,
    silent_shuffle,
    wrong_engine,
)
from lead_scripts import LEAD, PROBE, asked_now, cause, checks, conversation, last_output, open_answer, since
from one_case import SPECIALISTS, VERIFY, deciding, scripts, sends
from scripted_api import Several, Text, Use, scripted, system_text, tokens_of
from sure_engine import SureEngine

from traindx.agents import SPECIALISTS as ALL_SPECIALISTS
from traindx.investigators.claude import ClaudeInvestigator
from traindx.investigators.claude_code.fixing import ClaudeFixer
from traindx.model import Decision, Diagnosis
from traindx.session import resume_session, run_debug_session
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
    assert shown.index("## Root Cause") < shown.index("**Dissent**") < shown.index("## Why This Happens")
    assert "log-of-zero" in shown
    assert COUNTED in (Path(result.folder) / "evidence" / "outputs" / "P001.txt").read_text()


async def test_a_right_engine_and_a_wrong_model_end_with_the_engines_cause(work: Path, settings: Made) -> None:
    """The lead reads a line and is sure; the engine's cause is challenged by a measurement and stands."""
    wrong = conversation(otherwise=[cause(work, "MOMENTUM = 0.9", "opt.momentum-too-high", proof(
        "train.py:18", "MOMENTUM = 0.9", "such a momentum overshoots"))])
    stands = checks("largest after the clip 1.0 its distance from one 0.0", MEASURE_CLIP, found=False)
    with scripted({LEAD: wrong, "adversary": stands}) as api:
        result = await run(work, settings(api.url))
    assert result.status == "awaiting_approval", result.reason
    assert result.diagnosis is not None
    assert result.diagnosis.failure_mode == "loss.log-of-zero"
    assert any("The lead holds opt.momentum-too-high" in d for d in result.diagnosis.dissent)


async def test_lead_and_engine_err_and_the_adversarys_probe_turns_the_lead(failed: Path, settings: Made) -> None:
    """Case A: what speaks for the rival was run by the adversary."""
    lead = conversation(
        objection=lambda body: [cause(failed, NAN, MODE, proof("P001", COUNTED, "counted by the adversary"))],
        otherwise=[open_answer()])
    answers = iter([COUNT_NAN, COUNT_NAN])
    current: list[str] = []

    def attacks(body: Mapping[str, Any]) -> Any:
        if not since(body):
            current[:] = [next(answers)]
            return Use(PROBE, {"code": current[0]})
        first = MODE not in str(body["messages"][0])
        item = proof(last_output(body), COUNTED if first else "gradient with the row: nan without:", "as it was run",
                     failure_mode=None)
        if first:
            return doubt("contradicts", rivals=[{"claim": "A reading is not a number", "failure_mode": MODE,
                                                 "would_show": "NaN in the data", "evidence": item}])
        return doubt(disproofs=[{"observation": "a finite gradient", "looked_for": True, "found": False,
                                 "evidence": item}])

    with scripted({LEAD: lead, "adversary": attacks}) as api:
        result = await run(failed, settings(api.url), offline=SureEngine())
    assert [asked_now(a.body) for a in api.of(LEAD)] == ["look", "facts", "guess", "objection"]
    assert result.diagnosis is not None, result.reason
    assert result.diagnosis.failure_mode == MODE


async def test_what_was_only_read_does_not_beat_a_sure_engine_and_leaves_it_open(failed: Path, settings: Made) -> None:
    """Case B: three specialists and the lead read, agree, and are against the engine's cause."""
    against = [proof(f"train.py:{n}", row.strip(), "rules the logarithm out", supports=False, failure_mode=engines)
               for engines in ("loss.log-of-zero",)
               for n, row in enumerate((failed / "train.py").read_text().split("\n"), 1) if row.startswith("    prob")]
    theirs = [*against, proof(f"train.py:{line_with(failed, NAN)}", NAN.strip(), "not a number", failure_mode=MODE)]
    names = ("data-flow-tracer", "torch-logic-auditor", "silent-bug-detector")
    lead = conversation(facts=[sends(*names), open_answer()], otherwise=[cause(failed, NAN, MODE, theirs[-1],
                                                                               outer=against)])
    readers = {n: specialist(n, status="found", answer="not the logarithm", evidence=theirs) for n in names}
    with scripted({LEAD: lead, **readers}) as api:
        result = await run(failed, settings(api.url), offline=SureEngine())
    assert result.status == "needs_more_data"
    assert f"The lead holds {MODE}" in result.reason
    assert "nothing that was run speaks for it" in result.reason
    assert "The engine's ranking held loss.log-of-zero" in result.reason


async def test_a_lead_finds_by_probe_what_no_instrument_knows(silent: Path, settings: Made) -> None:
    """Case C: nothing crashed, no rule speaks of it; one count in the data shows it."""
    lead = finds(silent, SHUFFLED, COUNT_MOVED, MOVED, "data.labels-in-another-order")
    supports = checks(MOVED, f"print('again')\n{COUNT_MOVED}", found=False)
    with scripted({LEAD: lead, "adversary": supports}) as api:
        result = await run(silent, settings(api.url), symptom="validation accuracy stays at chance")
    assert result.diagnosis is not None, result.reason
    assert result.diagnosis.failure_mode == "data.labels-in-another-order"
    assert result.diagnosis.confidence >= 0.85
    assert result.diagnosis.location == f"train.py:{line_with(silent, SHUFFLED)}"
    looks = [t for a in api.of(LEAD)[:1] for t in [str(a.body["messages"][0])]]
    assert "loss." not in looks[0].partition("# The case")[2], "the first look is blind"


async def test_a_revision_in_another_process_resumes_the_thread(failed: Path, settings: Made) -> None:
    lead = finds(failed, NAN, COUNT_NAN, COUNTED, MODE)
    supports = checks("gradient with the row: nan without:", COUNT_NAN, found=False)
    with scripted({LEAD: lead, "adversary": supports}) as api:
        made = settings(api.url)
        waiting = await run(failed, made)
        paid, attacked = len(api.of(LEAD)), len(api.of("adversary"))
        result = await resume_session(waiting.folder, report=False, investigator=ClaudeInvestigator(made),
                                      approve=says("could it be the momentum?"))
        assert result.status == "awaiting_approval", result.reason
        again = api.of(LEAD)[paid:]
        assert [asked_now(a.body) for a in again] == ["news"]
        history = str(again[0].body["messages"])
        assert history.count("# The case") == 1, "what was said before is in the conversation, and not said again"
        assert "could it be the momentum?" in history
        assert len(api.of("adversary")) == attacked, "the same diagnosis is not attacked again"
        moved = Path(made.environment["CLAUDE_CONFIG_DIR"]) / "projects"
        moved.rename(moved.with_name("gone"))
        anew = await resume_session(waiting.folder, report=False, investigator=ClaudeInvestigator(made),
                                    approve=says("and the batch size?"))
        assert anew.status == "awaiting_approval", anew.reason
        assert anew.degraded == ()
        assert "Earlier in this session you answered" in str(api.of(LEAD)[-1].body["messages"][0])


async def test_the_fixed_prompts_of_a_whole_session_are_bounded(work: Path, settings: Made) -> None:
    with scripted(scripts(work)) as api:
        result = await run(work, made := settings(api.url), deciding("B"), verify=VERIFY, fixer=ClaudeFixer(work, made))
    assert result.status == "fixed", result.reason
    counted = fixed(api.asked, cli=True)
    print(f"fixed prompts of a whole session with the CLI: {sum(counted.values()):,} tokens of ours", counted)
    assert {LEAD, *SPECIALISTS, "adversary", "fix-author", "fix-reviewer"} == set(counted)
    assert sum(counted.values()) < WHOLE_SESSION, counted


async def test_the_first_request_of_every_specialist_is_bounded(work: Path, settings: Made) -> None:
    asks = Several([Use("Agent", {"subagent_type": a, "description": "look", "prompt": QUESTION.format(n=a)})
                    for a in ALL_SPECIALISTS])
    silent = {a: specialist(a, status="not_found") for a in ALL_SPECIALISTS}
    lead = conversation(look=[asks, open_answer()], otherwise=[open_answer()])
    with scripted(scripts(work, **silent, **{LEAD: lead})) as api:
        await run(work, settings(api.url, concurrency=6), deciding("later"))
    first = {a: api.of(a)[0].body for a in ALL_SPECIALISTS}
    tokens = {a: tokens_of(body) for a, body in first.items()}
    print("first requests of specialists with the CLI, in tokens:", tokens)
    assert max(tokens.values()) < FIRST_OF_A_SPECIALIST, tokens
    assert all(f"Rows {a}:" in str(body["messages"]) for a, body in first.items())
    assert all(body["tools"] == first[SPECIALISTS[0]]["tools"] for body in first.values()), "one cached prefix"
    own = {**first, **{a.role: a.body for a in reversed(api.asked) if a.role in (LEAD, "adversary")}}
    starts = {system_text(body).partition(FRAME)[2][:1000] for body in own.values()}
    assert len(starts) == 1


async def test_without_consent_nothing_is_run_and_a_probe_is_refused(failed: Path, settings: Made) -> None:
    lead = conversation(look=[Use(PROBE, {"code": "open('planted.txt', 'w')"}), open_answer()],
                        otherwise=[open_answer()])
    with scripted({LEAD: lead, "adversary": [doubt()]}) as api:
        result = await run_debug_session("loss is nan", failed, report=False,
                                         investigator=ClaudeInvestigator(settings(api.url)))
    assert PROBE not in {t["name"] for t in api.of(LEAD)[0].body["tools"]}
    assert not (Path(result.folder) / "evidence" / "outputs").exists()
    assert not list(failed.rglob("planted.txt"))


async def test_a_specialist_of_another_kind_is_refused(work: Path, settings: Made) -> None:
    tries = [Use("Agent", {"subagent_type": kind, "description": "x", "prompt": "write"})
             for kind in ("general-purpose", "claude", "fork")]
    lead = conversation(look=[*tries, open_answer()], otherwise=[open_answer()])
    with scripted({LEAD: lead, "adversary": [doubt()], "": [Text("done")]}) as api:
        await run(work, settings(api.url))
    assert api.roles == {LEAD, "adversary"}, "none of them was started"


def says(comment: str) -> Callable[[Diagnosis], Decision | None]:
    """A person who sends the first diagnosis back with this, and waits with the next one."""
    left = [comment]
    return lambda diagnosis: Decision.revise(diagnosis, left.pop()) if left else None


def line_with(work: Path, text: str) -> int:
    """The number of the line with this text."""
    return (work / "train.py").read_text().split("\n").index(text) + 1
