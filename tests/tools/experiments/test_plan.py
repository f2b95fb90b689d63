"""Which experiment is chosen: the one that tells most for what it costs."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.decisions import (
    load_decisions,
    load_step_decisions,
    parse_decisions,
    parse_step_decisions,
)
from traindx_tools.errors import CatalogError
from traindx_tools.experiments.change import Change, parse_change
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.plan import Decision, beliefs_of, choose, information, with_seen

MODES = ["a", "b", "c", "d"]
BELIEFS = st.dictionaries(st.sampled_from(MODES), st.floats(0.0, 1.0), max_size=4)
SLOW = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
REMOVED = st.frozensets(st.sampled_from(MODES))


def decision(name: str, *removes: str, runs: int = 1) -> Decision:
    return Decision(Change(name), frozenset(removes), "because", runs)


@SLOW
@given(REMOVED, BELIEFS)
def test_information_lies_between_nothing_and_one_bit(removes: frozenset[str], beliefs: dict[str, float]) -> None:
    bits = information(Decision(Change("x"), removes, ""), beliefs)
    assert -1e-9 <= bits <= 1.0


def test_a_change_that_says_the_same_whatever_the_cause_tells_nothing() -> None:
    assert information(decision("x"), {"a": 0.5, "b": 0.5}) == pytest.approx(0.0)
    assert information(decision("x", "a", "b"), {"a": 0.5, "b": 0.5}) == pytest.approx(0.0)


def test_the_change_that_splits_the_suspects_is_chosen() -> None:
    beliefs = {"a": 0.45, "b": 0.45}
    told = choose([decision("all", "a", "b"), decision("half", "a"), decision("none", "c")], beliefs, run_seconds=10.0,
                  left=100.0)
    assert told is not None
    assert str(told.decision.change) == "half"
    assert told.suspects == ("a",)


def test_of_two_that_tell_the_same_the_cheaper_one_is_chosen() -> None:
    told = choose([decision("dear", "a", runs=3), decision("cheap", "a")], {"a": 0.5}, run_seconds=10.0, left=100.0)
    assert told is not None
    assert str(told.decision.change) == "cheap"
    assert told.seconds == 10.0


def test_nothing_is_chosen_beyond_the_budget_twice_or_for_nothing() -> None:
    one = [decision("x", "a")]
    assert choose(one, {"a": 0.5}, run_seconds=10.0, left=9.0) is None
    assert choose(one, {"a": 0.5}, run_seconds=10.0, left=99.0, done=["x"]) is None
    assert choose(one, {"a": 0.001}, run_seconds=10.0, left=99.0) is None


@SLOW
@given(BELIEFS, st.lists(st.sampled_from([*MODES, "e", "f"])))
def test_beliefs_leave_room_for_what_nobody_thought_of(ranked: dict[str, float], others: list[str]) -> None:
    beliefs = beliefs_of(list(ranked.items()), others)
    assert all(p >= 0.0 for p in beliefs.values())
    assert sum(beliefs.values()) <= 1.0 + 1e-9
    if sum(ranked.values()) < 0.9:
        assert sum(beliefs.values()) < 1.0


def test_every_mode_that_an_experiment_decides_exists_and_no_change_stands_twice() -> None:
    told = load_decisions()
    assert {m for d in told for m in d.removes} <= load_catalog().keys()
    assert len({str(d.change) for d in told}) == len(told)
    assert all(d.why.endswith(".") for d in told)


@pytest.mark.parametrize(("outcome", "decides"), [
    (Outcome("nonfinite"), True), (Outcome("fall"), True), (Outcome("level", "validation accuracy"), False),
    (Outcome("fall", "test loss"), False), (Outcome("level", "loss"), False),
    (Outcome("gap", "loss", "validation loss"), False)])
def test_one_batch_decides_nothing_of_what_it_moves_whatever_the_cause(outcome: Outcome, decides: bool) -> None:
    by_change = {d.change.name: d for d in load_decisions()}
    assert by_change["one-batch"].decides(outcome) is decides
    assert by_change["float32"].decides(outcome)


@pytest.mark.parametrize("moves", ["held-out", ["no-such"], 3])
def test_an_outcome_that_is_none_is_refused(moves: object) -> None:
    with pytest.raises(CatalogError, match="moves is"):
        parse_decisions({"experiment": [{"change": "float32", "removes": [], "why": "x.", "moves": moves}]})


def test_every_mode_that_a_change_of_a_step_decides_exists() -> None:
    told = load_step_decisions()
    assert {m for d in told.values() for m in d.removes} <= load_catalog().keys()
    assert not {str(d.change) for d in load_decisions()} & told.keys()
    assert all(d.why.endswith(".") for d in told.values())


@pytest.mark.parametrize("rows", [[{"change": "fresh-state"}], [{"change": "no-such", "removes": [], "why": "x."}],
                                  [{"change": "fresh-state", "removes": [], "why": 3}], ["fresh-state"]])
def test_a_broken_table_of_steps_says_what_is_wrong(rows: list[object]) -> None:
    with pytest.raises(CatalogError, match=r"experiments\.toml"):
        parse_step_decisions({"step": rows})


@pytest.mark.parametrize("data", [
    {}, {"experiment": []}, {"experiment": [{"change": "Not A Name", "removes": [], "why": "x."}]},
    {"experiment": [{"change": "float32", "why": "x."}]}, {"experiment": [{"change": 3, "removes": [], "why": "x."}]},
])  # fmt: skip
def test_a_broken_table_says_what_is_wrong(data: dict[str, object]) -> None:
    with pytest.raises(CatalogError, match=r"experiments\.toml"):
        parse_decisions(data)


def test_a_change_reads_back_as_it_was_written() -> None:
    for text in ("float32", "learning-rate:times=0.1", "set:optim.lr=1e-4", "env:OMP_NUM_THREADS=1", "no-workers"):
        assert str(parse_change(text)).split(":")[0] == text.split(":")[0]
        assert parse_change(str(parse_change(text))) == parse_change(text)
    assert math.isclose(float(parse_change("learning-rate:times=0.1").options["times"]), 0.1)


def test_what_few_programs_have_makes_its_modes_likelier_and_its_experiment_the_first() -> None:
    seldom = Decision(Change("names-by-number"), frozenset({"a"}), "why", has=("names-by-text",), specific=True,
                      seldom=20.0)
    usual = Decision(Change("learning-rate", {"times": 0.1}), frozenset({"b", "c", "d"}), "why")
    beliefs = dict.fromkeys("abcdefghij", 0.02)
    seen = with_seen(beliefs, [seldom, usual], {"names-by-text": "files holds 30 names"})
    assert sum(seen.values()) == pytest.approx(sum(beliefs.values()))
    assert seen["a"] == pytest.approx(20 * seen["b"])
    assert with_seen(beliefs, [seldom, usual], {"shuffled": "the loader"}) == pytest.approx(beliefs)
    chosen = [choose([seldom, usual], b, run_seconds=1, left=100) for b in (beliefs, seen)]
    assert [str(c.decision.change) for c in chosen if c] == ["learning-rate:times=0.1", "names-by-number"]


def test_a_part_that_is_looked_for_by_itself_does_not_say_that_others_were_sought() -> None:
    dropout = Decision(Change("no-dropout"), frozenset({"a"}), "why", needs="Dropout", has=("dropout",))
    names = Decision(Change("names-by-number"), frozenset({"b"}), "why", needs=r"sorted\(", has=("names-by-text",))
    assert dropout.fits("nn.Dropout(0.5)", {"names-by-text": "there"})
    assert not dropout.fits("nn.Dropout(0.5)", {"shuffled": "there"})
    assert names.fits("", {"names-by-text": "there", "shuffled": "there"})
    assert not names.fits("sorted(x)", {"shuffled": "there"})
    assert names.fits("sorted(x)", {})
