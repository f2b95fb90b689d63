"""The whole of an isolation: controls that make no sense, symptoms that come and go, budgets that end."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from traindx_tools.experiments.isolating.isolate import Isolated, isolate, isolate_turn
from traindx_tools.experiments.isolating.oracle import Budget, Oracle, Trial
from traindx_tools.experiments.isolating.outcomes import Items, Shown
from traindx_tools.experiments.isolating.sequential import Rates, fisher, rates_of

KEYS = [f"key{i}" for i in range(40)]


def steady(fails: Callable[[Items], bool]) -> Callable[[Items, int], Trial]:
    return lambda part, number: Trial(Shown.FAIL if fails(part) else Shown.PASS, "loss 1.5")


def sometimes(rate: Callable[[Items], float], seed: int = 0) -> Callable[[Items, int], Trial]:
    """Fails by a chance that depends on the set alone, drawn anew for each run."""
    def run(part: Items, number: int) -> Trial:
        drawn = random.Random(f"{seed} {sorted(part)} {number}").random()
        return Trial(Shown.FAIL if drawn < rate(part) else Shown.PASS)

    return run


def among(run: Callable[[Items, int], Trial], budget: int = 500, **more: bool) -> Isolated:
    return isolate(KEYS, Oracle(run, Budget(budget)), **more)


def test_one_key_of_forty() -> None:
    found = among(steady(lambda part: 17 in part))
    assert found.status == "found"
    assert found.named == (("key17",),)
    assert found.without is Shown.PASS
    assert found.exit_code == 1
    assert found.bound == 6
    assert found.runs <= 4 + 6 + 1 + 1 + 2  # controls, search, the one alone, all without it, each of these again


def test_two_that_need_each_other_and_two_that_do_not() -> None:
    both = among(steady(lambda part: {3, 30} <= part))
    assert both.named == (("key3", "key30"),)
    either = among(steady(lambda part: bool({3, 30} & part)))
    assert sorted(either.named) == [("key3",), ("key30",)]
    assert either.without is Shown.PASS


@pytest.mark.parametrize(("fails", "status", "code", "said"), [
    (lambda part: False, "not-bad", 0, "the bad run does not show the symptom here"),
    (lambda part: True, "both-bad", 3, "the good run shows the symptom too"),
    (lambda part: not part, "reversed", 3, "the other way round"),
])  # fmt: skip
def test_ends_between_which_there_is_nothing(fails: Callable[[Items], bool], status: str, code: int, said: str) -> None:
    found = among(steady(fails))
    assert (found.status, found.exit_code) == (status, code)
    assert said in found.problem
    assert found.runs == 4


def test_an_end_that_does_not_run() -> None:
    found = among(lambda part, number: Trial(Shown.UNRESOLVED, "ended with exit code 1"))
    assert (found.status, found.exit_code) == ("unresolved", 3)
    assert "ended with exit code 1" in found.problem


def test_noise_is_called_noise() -> None:
    found = among(sometimes(lambda part: 0.5, seed=3))
    assert (found.status, found.exit_code) == ("noise", 3)
    assert "noise" in found.problem


@pytest.mark.parametrize("seed", range(8))
def test_a_symptom_that_comes_in_most_bad_runs_is_found_by_more_runs(seed: int) -> None:
    found = among(sometimes(lambda part: 0.8 if 17 in part else 0.02, seed))
    assert found.named == (("key17",),)
    assert found.runs >= 20


def test_a_predicate_that_looks_steady_at_first_is_not_believed() -> None:
    """Both controls agree twice; the found set, run again, says otherwise."""
    def run(part: Items, number: int) -> Trial:
        steady_ends = len(part) in (0, len(KEYS)) and number < 2
        fails = (len(part) > 0) if steady_ends else random.Random(f"{sorted(part)} {number}").random() < 0.5
        return Trial(Shown.FAIL if fails else Shown.PASS)

    assert among(run).status in ("noise", "unfinished")


def test_a_budget_that_ends_says_how_far_it_came() -> None:
    found = among(steady(lambda part: 17 in part), budget=7)
    assert (found.status, found.exit_code) == ("unfinished", 3)
    assert 17 in found.left
    assert len(found.left) < 40
    assert "--budget" in found.problem


def test_runs_of_before_are_counted_apart_and_cost_no_budget() -> None:
    def kept(part: Items, number: int) -> Trial:
        return Trial(Shown.FAIL if 17 in part else Shown.PASS)

    found = isolate(KEYS, Oracle(steady(bool), Budget(0), kept=kept))
    assert found.named == (("key17",),)
    assert found.runs == 0
    assert found.known > 6


def test_left_out_alone() -> None:
    found = among(steady(lambda part: bool({5, 33} & part)), only_left_out=True)
    assert sorted(found.named) == [("key33",), ("key5",)]
    assert among(steady(lambda part: True), only_left_out=True).status == "both-bad"
    assert among(steady(lambda part: False), only_left_out=True).status == "not-bad"
    assert among(sometimes(lambda part: 0.5, seed=1), only_left_out=True).status in ("noise", "both-bad")


def test_no_difference() -> None:
    found = isolate([], Oracle(steady(bool)))
    assert (found.status, found.exit_code) == ("no-difference", 0)


def test_the_turn_in_a_list() -> None:
    found = isolate_turn(KEYS[:30], Oracle(steady(lambda part: 12 in part)))
    assert found.named == (("key12",),)
    assert found.runs <= 4 + 5 + 2


def test_a_turn_among_those_that_cannot_be_tested() -> None:
    def run(part: Items, number: int) -> Trial:
        if 10 <= len(part) <= 14:
            return Trial(Shown.UNRESOLVED, "ImportError")
        return Trial(Shown.FAIL if 12 in part else Shown.PASS)

    found = isolate_turn(KEYS[:30], Oracle(run))
    assert (found.status, found.exit_code) == ("range", 1)
    assert found.named == (tuple(KEYS[9:15]),)


def test_result_as_json_has_the_controls_and_every_set() -> None:
    told = among(steady(lambda part: 17 in part)).to_json()
    assert told["causes"] == [["key17"]]
    assert [t["shown"] for t in told["controls"]["bad"]] == ["fail", "fail"]
    assert all(a["runs"] for a in told["asked"])


def test_rates() -> None:
    assert fisher((0, 10), (10, 0)) == pytest.approx(1 / 184_756)
    assert fisher((5, 5), (5, 5)) > 0.5
    assert rates_of((3, 7), (5, 5)) is None
    rates = rates_of((0, 10), (8, 2))
    assert rates is not None
    assert 0 < rates.good < 0.1 < 0.7 < rates.bad < 0.8
    assert Rates(0.05, 0.5).decided(2, 0) is True
    assert Rates(0.05, 0.5).decided(0, 8) is False
    assert Rates(0.05, 0.5).decided(1, 1) is None
