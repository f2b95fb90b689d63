"""A lead whose first cause does not survive its fix, and a specialist that measures for itself: what both ways of
asking Claude must do alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from answers_for import specialist
from hard_cases import MEASURE_CLIP, RETURNED, proof
from lead_scripts import LEAD, PROBE, asked_now, cause, conversation, last_output, open_answer, user_texts
from one_case import CLIPPED, FIXED, LINE, scripts
from scripted_api import Api, Use

from traindx.session_result import SessionResult

COUNT = """import numpy as np, train
x, y = train.make_rows(np.random.default_rng(train.SEED), train.TRAIN_ROWS)
print("rows that hold a value below zero:", int((x < 0).any(1).sum()), "of", len(x))
"""
COUNTED = "rows that hold a value below zero: 6000 of 6000"
FIRST, SECOND = "numerics.clip-without-distance", "data.negative-readings"


def two_causes(work: Path) -> dict[str, Any]:
    """A cause at the first look; after its strike another one, measured anew; after that strike the lead is open."""

    def first(body: Mapping[str, Any]) -> list[Any]:
        return [cause(work, LINE, FIRST, proof("P001", CLIPPED, "no distance is left"), edit=FIXED)]

    def later(body: Mapping[str, Any]) -> list[Any]:
        if sum("# What came since" in t for t in user_texts(body)) > 1:
            return [open_answer()]
        made = cause(work, RETURNED, SECOND, proof(last_output(body), COUNTED, "each row holds one"),
                     edit="    return np.abs(x).astype(np.float32), y")
        return [Use(PROBE, {"code": COUNT}), made]

    lead = conversation(look=lambda body: [Use(PROBE, {"code": MEASURE_CLIP}), *first(body)], news=later,
                        otherwise=first)
    return scripts(work, **{LEAD: lead})


def check_strikes(result: SessionResult, api: Api, work: Path, code: str) -> None:
    """Two strikes in one session: what was said is not said, and not paid for, again."""
    assert [a.approach.failure_mode for a in result.attempts] == [FIRST, SECOND], result.reason
    assert all(a.reverted for a in result.attempts)
    assert (work / "train.py").read_text() == code, "a failed fix is taken back"
    assert [asked_now(a.body) for a in api.of(LEAD)] == ["look", "look", "facts", "guess", "news", "news", "news"]
    last = api.of(LEAD)[-1].body
    assert str(last["messages"]).count("# The case") == 1
    news = [t for t in user_texts(last) if "# What came since" in t]
    assert len(news) == 2
    assert "Put it right at its place failed" in news[0]
    said = [t for t in user_texts(api.of("adversary")[0].body) if "# The diagnosis" in t]
    attacked = [m for a in api.of("adversary") for m in (FIRST, SECOND) if f"failure mode: {m}" in str(a.body)]
    assert said
    assert attacked == [FIRST, FIRST, SECOND, SECOND], "each diagnosis is attacked once: a probe and an answer"
    assert not api.roles & {"data-flow-tracer", "torch-logic-auditor", "failure-mode-researcher"}


def probing_specialist(work: Path) -> dict[str, Any]:
    """A specialist that measures, and reports what it measured."""
    found = proof("P001", CLIPPED, "the clip leaves no distance from one", failure_mode="loss.log-of-zero")
    return scripts(work, **{"data-flow-tracer": specialist(
        "data-flow-tracer", Use(PROBE, {"code": MEASURE_CLIP}), status="found", answer="the clip does nothing",
        evidence=[found])})


def check_probe(result: SessionResult) -> None:
    """Its probe is direct evidence, under its name."""
    assert result.diagnosis is not None, result.reason
    ours = [e for e in result.diagnosis.evidence if e.source == "run by data-flow-tracer, P001"]
    assert [(e.place, e.strength, e.bearing) for e in ours] == [("evidence/outputs/P001.txt:1", "ran", "cause")]
    assert CLIPPED in (Path(result.folder) / ours[0].place.partition(":")[0]).read_text()
    assert ours[0].id in result.diagnosis.cites
    assert "data-flow-tracer" in result.investigators
    assert not [e for e in result.diagnosis.evidence if e.source.startswith("run by lead")]
