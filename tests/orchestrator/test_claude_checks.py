"""What of a model's claims stands, and what it weighs: cited lines, values, sources; never its own certainty."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from traindx.investigators.bench.outputs import Output, Outputs
from traindx.investigators.claude_code import evidence, triangulation, weighing
from traindx.investigators.claude_code.adversary import challenge, dissent, looked_for
from traindx.investigators.claude_code.answers import Item, Report, Row, read, schema
from traindx.investigators.claude_code.asking import Reply
from traindx.investigators.claude_code.checking import Checker, Proven, holds_value, place_of
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.reports import Work
from traindx.model import Evidence
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
    outputs = {o.id: o for o in (
        Output("P001", "run_probe", json.dumps({"code": "print('rows', 3000, 'moved', count(x))"}),
               "rows 3000 moved 2399\nloss 0.6931472\ndtype float16"),
        Output("I001", "instrument", "{}", "train,loss,60,2.303,2.31"))}
    return Checker(Scope(workspace), {"L102-1": L102}, frozenset({"https://example.org/a", "lr.too-high"}), outputs)


def item(**changes: Any) -> Item:
    return Item.model_validate({"claim": "the rate is far too high", "supports": True,
                                "value": "10.0", "place": "train.py:4", "quote": "learning_rate = 10.0",
                                "failure_mode": "lr.too-high", **changes})


@pytest.mark.parametrize("changes", [
    {}, {"place": "./train.py:4"}, {"place": "train.py:L4"}, {"place": "`train.py:4`, the assignment"},
    {"quote": "learning_rate  =   10.0"}, {"quote": "rate = 10.0", "value": ""},
    {"quote": "learning_rate = 10.0\nweight = 1.0"}, {"value": "1e1"},
    {"place": "log.txt:2, step 2", "quote": "loss nan grad_norm 310.0", "value": "310"},
    {"value": "310"},
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
    ({"place": "the optimizer"}, "names no line"), ({"place": "L999-1"}, "names no line"),
    ({"place": "L102-1", "value": "999"}, "not in the evidence"),
    ({"place": "L102-1", "value": "31"}, "not in the evidence"),
    ({"place": "https://example.org/b"}, "was not fetched"), ({"claim": "  "}, "claims nothing"),
    ({"place": "P009"}, "no output P009"), ({"place": "P001:9", "quote": "rows 3000"}, "no line 9"),
    ({"place": "P001:2", "quote": "moved 2399", "value": ""}, "does not hold the quoted text"),
    ({"place": "P001", "quote": "rows", "value": "9"}, "not in P001"),
    ({"place": "P001", "quote": ""}, "quotes nothing"),
    ({"place": "P001:1", "quote": "rows 3000", "value": "3000"}, "written into the probe"),
])
def test_what_does_not_stand_is_dropped_and_said_why(checker: Checker, changes: dict[str, Any], why: str):
    kept, dropped = checker.items("tracer", [item(**changes)])
    assert not kept
    assert why in dropped[0].why


def test_evidence_and_sources_can_be_cited_without_a_line(checker: Checker):
    cited = checker.item("a", item(place="[L102-1]", value="310"))
    fetched = checker.item("a", item(place="https://example.org/a#part", value=""))
    catalog = checker.item("a", item(place="lr.too-high", value=""))
    assert [p.kind for p in (cited, fetched, catalog) if isinstance(p, Proven)] == ["evidence", "source", "source"]


@pytest.mark.parametrize(("changes", "kind", "place"), [
    ({"place": "P001:1", "quote": "moved 2399", "value": "2399 of 3000"}, "run", "evidence/outputs/P001.txt:1"),
    ({"place": "P001", "quote": "dtype float16", "value": ""}, "run", "evidence/outputs/P001.txt:3"),
    ({"place": "P001:2", "quote": "loss 0.6931472", "value": "0.693 = ln 2"}, "run", "evidence/outputs/P001.txt:2"),
    ({"place": "P001:1", "quote": "rows 3000 moved 2399 loss", "value": "2399"}, "run", "evidence/outputs/P001.txt:1"),
    ({"place": "[I001]", "quote": "train,loss,60", "value": "2.303"}, "measured", "evidence/outputs/I001.txt:1"),
])
def test_what_was_run_is_direct_and_what_was_measured_is_not(checker: Checker, changes: dict[str, Any], kind: str,
                                                             place: str):
    found = checker.item("tracer", item(**changes))
    assert isinstance(found, Proven), found
    assert (found.kind, found.place) == (kind, place)
    made = evidence.of_claims([found], ())[0]
    assert (made.strength, made.bearing) == (("ran", "cause") if kind == "run" else ("derived", "sign"))


@pytest.mark.parametrize(("code", "quote", "beforehand"), [
    ("print('moved 2399 of 3000')", "moved 2399 of 3000", True), ("print('moved', 2399)", "moved 2399", True),
    ("n = 2399\nprint(f'moved {n}')", "moved 2399", True), ("print('loss', -0.5)", "loss -0.5", True),
    ("print('moved', 2399, 'of', len(x))", "moved 2399 of 3000", False),
    ("print('the clip', top.max(), 'from one', 1.0 - top.max())", "the clip 1.0 from one 0.0", False),
    ("n = 0\nn = count(x)\nprint(n, 'of', 3000)", "2399 of 3000", False),
    ("print('it is', 'broken')", "it is broken", False), ("print('it is broken')", "it is broken", True),
    ("print('dtype', x.dtype)", "dtype float16", False), ("echo moved 2399", "moved 2399", True),
    ("grep -c 3000 log", "2399", False),
])
def test_what_the_code_itself_says_is_no_measurement(tmp_path: Path, code: str, quote: str, beforehand: bool):
    output = Output("P001", "run_probe", json.dumps({"code": code}), quote)
    checker = Checker(Scope(tmp_path), outputs={"P001": output})
    found = checker.item("lead", item(place="P001:1", quote=quote, value=""))
    assert isinstance(found, Proven) is not beforehand, found


def test_an_output_that_was_changed_since_counts_as_gone(tmp_path: Path):
    outputs = Outputs(tmp_path)
    kept = outputs.add("run_probe", {"code": "x"}, "moved 2399", "lead")
    assert outputs.all()["P001"].text == "moved 2399"
    again = outputs.add("instrument", {"name": "explain"}, "page", "lead")
    assert outputs.add("instrument", {"name": "explain"}, "page", "adversary").id == again.id == "I001"
    assert outputs.all()["I001"].users == {"lead", "adversary"}
    assert outputs.add("run_probe", {"code": "x"}, "moved 2399", "adversary").id == "P002", "a run is one of its own"
    (tmp_path / kept.path).write_text("moved 3000")
    assert set(outputs.all()) == {"P002", "I001"}
    assert outputs.add("run_probe", {"code": "y"}, "z", "lead").id == "P003", "no id is given twice"


@pytest.mark.parametrize(("text", "value", "holds"), [
    ("from 1.2 to 310", "1.2 -> 310", True), ("from 1.2 to 310", "31", False), ("from 1.2 to 310", "0.2", False),
    ("peak = 3.10e2", "310", True), ("1,024 rows", "1024", True), ("shape (32, 1)", "(32, 1)", True),
    ("dtype is float16", "float16", True), ("dtype is float16", "bfloat16", False), ("x", "", False),
    ("accuracy 9.7 %", "9.7%", True), ("loss 0.6931", "0.693", True), ("loss 0.6931", "0.69", True),
    ("loss 0.6931", "0.7", False), ("loss 0.6931", "0.694", False), ("loss 2.302585", "2.302585 = ln 10", True),
    ("loss 2.302585", "2.302585 = ln 9", False), ("loss 0.6931", "ln 2 = 0.6931", True),
    ("loss 0.5", "ln 2 = 0.6931", False), ("31/32 batches", "31 of 32 batches", True), ("3 rows", "2.9 rows", False),
    ("norm 1.24e-05", "1.2e-05", True), ("train,loss,60,2.303,2.31", "2.303", True), ("60,250,0.5", "250", True),
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
    ([line(kind="run", source="P001")], 5.0), ([line(kind="run", source="P001"), line("b")], 6.5),
    ([line(kind="run", source="P001", place=f"x:{n}") for n in range(9)], 5.0),
    ([line(kind="run", source=f"P{n:03d}") for n in range(9)], 8.0),
    ([line(kind="run", source="P001", supports=False)], -5.0), ([line(kind="measured", source="I001")], 0.5),
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
    rows = (Row(finding="only read about", url="https://x", impact="critical"),
            Row(finding="in both", url="https://x", location="train.py:4", match="exact", impact="high"))
    found = (Work("researcher", rows=rows), Work("tracer", proven=(line(place="train.py:7"), line())))
    table = triangulation.table(found)
    assert [r.finding for r in table] == ["in both", "only read about", "the rate is far too high"]
    assert [r.location for r in table] == ["train.py:4", "", "train.py:7"]
    shown = triangulation.markdown((dataclasses.replace(table[0], finding="a | b\n# c <script>"),)).splitlines()
    assert len(shown) == 3
    assert "a \\| b # c \\<script>" in shown[2]


def reply(**answer: Any) -> Reply:
    return Reply("adversary", {"relation": "supports", "why": "", "rivals": [], "disproofs": [], **answer})


def disproof(found: bool = True, **changes: Any) -> dict[str, Any]:
    cited = {"claim": "the loss is fine at step 1", "value": "2.0", "place": "log.txt:1", "quote": "step 1 loss 2.0",
             "supports": False, "failure_mode": None}
    return {"observation": "a healthy first step", "looked_for": True, "found": found,
            "evidence": {**cited, **changes}}


def test_a_disproof_that_stands_speaks_against_the_cause(checker: Checker):
    found = challenge(reply(disproofs=[disproof()]), checker, "lr.too-high")
    assert found.made
    assert found.contested
    assert [(p.failure_mode, p.supports, p.kind) for p in found.claims] == [("lr.too-high", False, "line")]
    run = challenge(reply(disproofs=[disproof(place="P001:1", quote="moved 2399", value="2399")]), checker, "m")
    assert weighing.moved(run.claims) == pytest.approx(-5.0)
    assert "moved 2399" in run.objections() or "2399" in run.objections()


def test_a_check_that_found_nothing_is_a_challenge_and_words_are_none(checker: Checker):
    looked = challenge(reply(disproofs=[disproof(found=False)]), checker, "m")
    assert looked.made
    assert not looked.contested
    assert looked_for(looked) == "It would be disproved by: a healthy first step (looked for, not seen)."
    nothing = {"observation": "nothing odd", "looked_for": True, "found": False}
    words = challenge(reply(disproofs=[nothing]), checker, "m")
    assert not words.made
    assert "No check of the adversary stands" in looked_for(words)


def test_a_disproof_that_does_not_stand_moves_nothing_and_is_told(checker: Checker):
    found = challenge(reply(relation="contradicts", why="I feel so", disproofs=[disproof(quote="step 1 loss 9.0")]),
                      checker, "m")
    assert len(found.unproven) == 1
    assert found.claims == ()
    assert not found.made
    assert dissent(found) == ("An adversary holds that the evidence contradicts this: I feel so.",)


def test_rivals_with_evidence_are_shown_and_a_missing_adversary_is_said(checker: Checker):
    seen = disproof()["evidence"]
    rivals = [{"claim": "The data holds an outlier", "failure_mode": None, "would_show": "one batch far out",
               "evidence": seen},
              {"claim": "The moon is full", "failure_mode": None, "would_show": "tides", "evidence": None},
              {"claim": "The seed is unlucky", "evidence": {**seen, "quote": "step 1 loss 9.0"}}]
    found = challenge(reply(rivals=rivals), checker, "m")
    assert dissent(found) == (
        "The data holds an outlier: another cause with the same signs (log.txt:1: step 1 loss 2.0); it would show one "
        "batch far out.",)
    assert len(found.to_json()["rivals"]) == 3, "what was dropped can be read in the session's folder"
    alone = challenge(Reply("adversary", failure=Failure("late", "no answer")), checker, "m")
    assert "Nobody tried to disprove this (late" in looked_for(alone)


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
    assert "finding" in schema(Row)["properties"]
