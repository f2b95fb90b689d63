"""What of a model's claims stands, and what it weighs: cited lines, values, sources; never its own certainty."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from traindx.investigators.claude_code import evidence, triangulation, weighing
from traindx.investigators.claude_code.adversary import challenge, doubted
from traindx.investigators.claude_code.answers import Item, Report, Row, read, schema
from traindx.investigators.claude_code.asking import Reply
from traindx.investigators.claude_code.checking import Checker, Proven, holds_value, place_of
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.team import Round, Work
from traindx.model import Diagnosis, Evidence, NeedsData
from traindx.policy import Scope
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.triage import rank

L102 = Evidence(id="L102-1", statement="grad_norm rose from 1.2 to 310 between steps 380 and 399", value="peak = 310",
                place="log.txt:2", strength="ran", bearing="sign", rule="L102")


@pytest.fixture
def checker(workspace: Path) -> Checker:
    (workspace / ".env").write_text("LEARNING=10.0 secret\n")
    (workspace.parent / "outside.py").write_text("learning_rate = 10.0\n")
    (workspace / "link.py").symlink_to(workspace.parent / "outside.py")
    (workspace / "log.txt").write_text("step 1 loss 2.0\nstep 2 loss nan grad_norm 310.0\n")
    return Checker(Scope(workspace), {"L102-1": L102}, frozenset({"https://example.org/a", "lr.too-high"}))


def item(**changes: Any) -> Item:
    return Item.model_validate({"claim": "the rate is far too high", "supports": True, "strength": "direct",
                                "value": "10.0", "place": "train.py:4", "quote": "learning_rate = 10.0",
                                "source": "", "failure_mode": "lr.too-high", **changes})


@pytest.mark.parametrize("changes", [
    {}, {"place": "./train.py:4"}, {"place": "train.py:L4"}, {"place": "`train.py:4`, the assignment"},
    {"quote": "learning_rate  =   10.0"}, {"quote": "rate = 10.0", "value": ""},
    {"quote": "learning_rate = 10.0\nweight = 1.0"}, {"value": "1e1"},
    {"place": "log.txt:2, step 2", "quote": "loss nan grad_norm 310.0", "value": "310"},
    {"value": "310", "source": "L102-1"},
])
def test_a_line_that_stands_is_kept(checker: Checker, changes: dict[str, Any]):
    found = checker.item("tracer", item(**changes))
    assert isinstance(found, Proven), found
    assert found.kind == "line"


@pytest.mark.parametrize(("changes", "why"), [
    ({"place": "train.py:5"}, "does not hold the quoted text"), ({"place": "train.py:99"}, "no line 99"),
    ({"place": "train.py:0"}, "no line 0"), ({"place": "nothing.py:4"}, "No such file"),
    ({"quote": "learning_rate = 1.0"}, "does not hold"), ({"quote": ""}, "quotes nothing"),
    ({"quote": " = "}, "quotes nothing"), ({"value": "0.1"}, "neither in the quoted line nor in the evidence"),
    ({"place": "../outside.py:1"}, "outside the workspace"), ({"place": "link.py:1"}, "outside the workspace"),
    ({"place": "/etc/passwd:1", "quote": "root:x:0:0"}, "outside the workspace"),
    ({"place": ".env:1", "quote": "LEARNING=10.0"}, "may hold secrets"),
    ({"place": ".:1", "quote": "train.py"}, "no regular file"),
    ({"place": "the optimizer"}, "names no line"), ({"place": "", "source": "L999-1"}, "names no line"),
    ({"place": "", "source": "L102-1", "value": "999"}, "not in the evidence"),
    ({"place": "", "source": "L102-1", "value": "31"}, "not in the evidence"),
    ({"place": "", "source": "https://example.org/b"}, "was not fetched"), ({"claim": "  "}, "claims nothing"),
])
def test_what_does_not_stand_is_dropped_and_said_why(checker: Checker, changes: dict[str, Any], why: str):
    kept, dropped = checker.items("tracer", [item(**changes)])
    assert not kept
    assert why in dropped[0].why


def test_evidence_and_sources_can_be_cited_without_a_line(checker: Checker):
    cited = checker.item("a", item(place="", source="L102-1", value="310"))
    fetched = checker.item("a", item(place="", source="https://example.org/a#part", value=""))
    catalog = checker.item("a", item(place="", source="lr.too-high", value=""))
    assert [p.kind for p in (cited, fetched, catalog) if isinstance(p, Proven)] == ["evidence", "source", "source"]


@pytest.mark.parametrize(("text", "value", "holds"), [
    ("from 1.2 to 310", "1.2 -> 310", True), ("from 1.2 to 310", "31", False), ("from 1.2 to 310", "0.2", False),
    ("peak = 3.10e2", "310", True), ("1,024 rows", "1024", True), ("shape (32, 1)", "(32, 1)", True),
    ("dtype is float16", "float16", True), ("dtype is float16", "bfloat16", False), ("x", "", False),
    ("accuracy 9.7 %", "9.7%", True),
])
def test_values_are_compared_as_numbers(text: str, value: str, holds: bool):
    assert holds_value(text, value) is holds


def test_places_are_read_from_words():
    assert place_of("src/model.py:41") == ("src/model.py", 41)
    assert place_of("log.txt:812, step 400") == ("log.txt", 812)
    assert place_of("somewhere") is None


def line(who: str = "a", place: str = "train.py:4", **changes: Any) -> Proven:
    return dataclasses.replace(Proven(who, "the rate is far too high", True, "line", place, "learning_rate = 10.0",
                                      "lr.too-high"), **changes)


SOURCE = Proven("b", "documented", True, "source", "lr.too-high", "", "lr.too-high", "lr.too-high")


@pytest.mark.parametrize(("proven", "odds"), [
    ([], 0.0), ([line()], 1.5), ([line(), line()], 1.5), ([line(), line("b")], 3.5), ([SOURCE], 0.5),
    ([line(), SOURCE], 2.5), ([line(place="log.txt:3")], 0.5), ([line(supports=False)], -1.5),
    ([line(), line(place="train.py:9", supports=False)], 0.0),
    ([line(place=f"train.py:{n}") for n in range(50)], 4.0), ([line(kind="evidence")], 0.0),
])
def test_claims_weigh_little_and_each_place_once(proven: list[Proven], odds: float):
    assert weighing.moved(proven) == pytest.approx(odds)


def finding(rule: str, bearing: Bearing = Bearing.SIGN, **measured: Any) -> Finding:
    return Finding(rule=rule, title="t", severity=Severity.HIGH, bearing=bearing, statement=f"{rule} was seen",
                   measured=measured, where=Location(file="log.txt", line=2, step=10.0), source="log.txt")


def test_models_alone_lift_no_cause_that_no_instrument_speaks_for():
    ranked = rank([finding("L106")], load_catalog(), "it diverges")
    silent = dataclasses.replace(ranked[1], speaks_for=())
    claims = [line(who, f"train.py:{n}", failure_mode=silent.mode.id) for n in range(9) for who in "abc"]
    after = weighing.weighed((ranked[0], silent), claims)
    assert [h.confidence for h in after if h.mode.id == silent.mode.id] == [silent.confidence]
    assert weighing.unlisted([L102.model_copy(update={"finding": None})], claims, []) == 0.0


def test_checked_claims_decide_where_instruments_left_it_open():
    ranked = rank([finding("L201"), finding("L211")], load_catalog(), "accuracy stays at chance")
    second = [h for h in ranked if h.speaks_for][1]
    claims = [line("a", failure_mode=second.mode.id), line("b", failure_mode=second.mode.id)]
    after = weighing.weighed(ranked, claims)
    assert after[0].mode.id == second.mode.id
    assert second.confidence < after[0].confidence <= Bearing.SIGN.cap
    against = [dataclasses.replace(c, supports=False) for c in claims]
    assert weighing.weighed(ranked, against)[0].mode.id != second.mode.id


def test_claims_become_evidence_under_free_ids_and_once():
    known = (L102, Evidence(id="S1", statement="earlier", value="v", place="p", source="read by x"))
    made = evidence.of_claims([line(), line(), SOURCE, line(kind="evidence", source="L102-1")], known)
    assert [(e.id, e.strength, e.place) for e in made] == [
        ("S2", "derived", "train.py:4"), ("S3", "derived", "lr.too-high")]
    assert evidence.of_claims([line(), SOURCE], (*known, *made)) == ()
    assert evidence.of(line(), (*known, *made)) == made[0]


def test_found_in_both_ranks_above_found_in_one():
    rows = (Row(finding="only read about", url="https://x", impact="critical", priority=1),
            Row(finding="in both", url="https://x", location="train.py:4", match="exact", impact="high", priority=2))
    found = Round((Work("researcher", rows=rows), Work("tracer", proven=(line(place="train.py:7"), line()))))
    table = triangulation.table(found)
    assert [r.finding for r in table] == ["in both", "only read about", "the rate is far too high"]
    assert [r.location for r in table] == ["train.py:4", "", "train.py:7"]
    shown = triangulation.markdown((dataclasses.replace(table[0], finding="a | b\n# c <script>"),)).splitlines()
    assert len(shown) == 3
    assert "a \\| b # c \\<script>" in shown[2]


def diagnosed(confidence: float = 0.9) -> Diagnosis:
    from scripted import diagnosis

    return diagnosis(confidence=confidence)


def reply(**answer: Any) -> Reply:
    return Reply("adversary", {"relation": "supports", "why": "", "rivals": [], "disproofs": [], **answer})


def disproof(**changes: Any) -> dict[str, Any]:
    cited = {"claim": "the loss is fine at step 1", "value": "2.0", "place": "log.txt:1", "quote": "step 1 loss 2.0",
             "source": "", "strength": "direct", "supports": False, "failure_mode": None}
    return {"observation": "a healthy first step", "looked_for": True, "found": True, "evidence": {**cited, **changes}}


def test_a_disproof_that_stands_lowers_the_confidence(checker: Checker):
    found = challenge(reply(disproofs=[disproof()]), checker)
    shown = doubted(diagnosed(), found)
    assert isinstance(shown, Diagnosis)
    assert 0.7 <= shown.confidence < 0.9
    code = disproof(place="train.py:4", quote="learning_rate = 10.0", value="10.0", claim="this line prevents it")
    broken = doubted(diagnosed(), challenge(reply(disproofs=[code]), checker))
    assert isinstance(broken, NeedsData)
    assert "this line prevents it (train.py:4" in broken.reason


def test_a_disproof_that_does_not_stand_moves_nothing_and_is_told(checker: Checker):
    found = challenge(reply(relation="contradicts", why="I feel so", disproofs=[disproof(quote="step 1 loss 9.0")]),
                      checker)
    assert len(found.unproven) == 1
    shown = doubted(diagnosed(), found)
    assert isinstance(shown, Diagnosis)
    assert shown.confidence == 0.9
    assert "contradicts this: I feel so" in shown.root_cause


def test_rivals_with_evidence_are_shown_and_a_missing_adversary_is_said(checker: Checker):
    seen = disproof()["evidence"]
    rivals = [{"claim": "The data holds an outlier", "failure_mode": None, "would_show": "one batch far out",
               "evidence": seen},
              {"claim": "The moon is full", "failure_mode": None, "would_show": "tides", "evidence": None},
              {"claim": "The seed is unlucky", "evidence": {**seen, "quote": "step 1 loss 9.0"}}]
    found = challenge(reply(rivals=rivals), checker)
    shown = doubted(diagnosed(), found)
    assert isinstance(shown, Diagnosis)
    assert shown.will_not_fix[-1] == ("The data holds an outlier: another cause with the same signs (log.txt:1: step 1 "
                                      "loss 2.0); it would show one batch far out.")
    assert len(shown.will_not_fix) == len(diagnosed().will_not_fix) + 1
    assert len(found.to_json()["rivals"]) == 3, "what was dropped can be read in the session's folder"
    alone = doubted(diagnosed(), challenge(Reply("adversary", failure=Failure("late", "no answer")), checker))
    assert isinstance(alone, Diagnosis)
    assert "Nobody tried to disprove this (late" in alone.root_cause


@pytest.mark.parametrize("answer", [{}, {"status": "maybe"}, {"status": "found", "evidence": [{"claim": 3}]},
                                    {"status": "found", "evidence": [{"claim": "x"}] * 31}])
def test_answers_in_another_form_are_none(answer: dict[str, Any]):
    assert isinstance(read(Report, answer), str)


def test_nulls_are_defaults_and_what_is_not_declared_is_dropped():
    report = read(Report, {"status": "found", "flow": [1], "evidence": [{"claim": "x", "place": None, "more": 1}]})
    assert isinstance(report, Report)
    assert report.evidence[0].place == ""


def test_schemas_hold_no_references():
    text = str(schema(Report))
    assert "$ref" not in text
    assert "$defs" not in text
    assert "title" in schema(Row)["properties"]
