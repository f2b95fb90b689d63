"""The searches find what was planted, and what they return is minimal whatever the test answers."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.experiments.isolating.bisection import first_bad
from traindx_tools.experiments.isolating.bounds import fewest_runs
from traindx_tools.experiments.isolating.every import every_cause, healthy_part
from traindx_tools.experiments.isolating.minimise import ddmin, minimise
from traindx_tools.experiments.isolating.outcomes import Items, Shown


class Counted:
    """A test that remembers and counts what it was asked for the first time."""

    def __init__(self, answer: Callable[[Items], Shown]) -> None:
        self._answer, self.known = answer, dict[Items, Shown]()

    def __call__(self, part: Items) -> Shown:
        if part not in self.known:
            self.known[part] = self._answer(part)
        return self.known[part]

    @property
    def runs(self) -> int:
        return len(self.known)


def needs(*wanted: int) -> Counted:
    """Fails where all of these are in it."""
    return Counted(lambda part: Shown.FAIL if part.issuperset(wanted) else Shown.PASS)


def any_of(*culprits: int) -> Counted:
    """Fails where one of these is in it."""
    return Counted(lambda part: Shown.FAIL if part.intersection(culprits) else Shown.PASS)


@given(st.integers(1, 300), st.data())
def test_one_culprit_costs_the_logarithm_and_one(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    test = needs(culprit)
    assert minimise(range(count), test) == (culprit,)
    assert test.runs <= fewest_runs(count) + 1


@given(st.integers(2, 120), st.data())
def test_culprits_that_only_fail_together_are_all_found(count: int, data: st.DataObject) -> None:
    wanted = tuple(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=4))))
    test = needs(*wanted)
    assert minimise(range(count), test) == wanted
    assert test.runs <= len(wanted) * (ceil(log2(count)) + 2) + len(wanted) ** 2 * 3


@given(st.integers(1, 7), st.data())
def test_whatever_the_test_answers_the_result_is_1_minimal(count: int, data: st.DataObject) -> None:
    """No monotony, and sets that are unresolved: each subset has a verdict of its own."""
    answers = data.draw(st.lists(st.sampled_from(Shown), min_size=2**count, max_size=2**count))
    answers[0], answers[-1] = Shown.PASS, Shown.FAIL

    def test(part: Items) -> Shown:
        return answers[sum(1 << i for i in part)]

    for found in (minimise(range(count), test), ddmin(range(count), lambda part: test(frozenset(part)))):
        assert test(frozenset(found)) is Shown.FAIL
        for left_out in found:
            assert test(frozenset(found) - {left_out}) is not Shown.FAIL


@given(st.integers(2, 40), st.data())
def test_pairs_that_go_only_together_are_named_together(count: int, data: st.DataObject) -> None:
    """A half of a pair ends with an error: the pair with the culprit in it is what is left."""
    culprit = data.draw(st.integers(0, 2 * count - 1))
    pair = {culprit, culprit ^ 1}

    def answer(part: Items) -> Shown:
        if any((i ^ 1) not in part for i in part):
            return Shown.UNRESOLVED
        return Shown.FAIL if culprit in part else Shown.PASS

    assert set(minimise(range(2 * count), Counted(answer))) == pair


@given(st.integers(2, 400), st.data())
def test_every_culprit_is_found_and_the_rest_is_shown_clean(count: int, data: st.DataObject) -> None:
    culprits = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=5))
    test = any_of(*culprits)
    causes = every_cause(range(count), test)
    assert sorted(causes.found) == [(c,) for c in sorted(culprits)]
    assert causes.rest is Shown.PASS
    assert test.runs <= len(culprits) * (ceil(log2(count)) + 3) + 1


@given(st.integers(8, 400), st.data())
def test_items_that_can_only_be_left_out_are_tried_beside_a_healthy_part(count: int, data: st.DataObject) -> None:
    culprits = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3))
    test = any_of(*culprits)
    part = healthy_part(range(count), test)
    assert part is not None
    assert not part & culprits
    assert sorted(every_cause(range(count), test, part).found) == [(c,) for c in sorted(culprits)]


def test_where_no_part_is_healthy_none_is_named() -> None:
    assert healthy_part(range(32), Counted(lambda part: Shown.FAIL)) is None


@given(st.integers(2, 200), st.data())
def test_the_first_bad_one_is_found_in_a_logarithm_of_runs(count: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(1, count - 1))
    asked: list[int] = []
    found = first_bad(count, lambda at: asked.append(at) or (Shown.FAIL if at >= turn else Shown.PASS))
    assert (found.last_good, found.first_bad, found.exact) == (turn - 1, turn, True)
    assert len(asked) <= max(0, ceil(log2(count - 1)))


@given(st.integers(3, 60), st.data())
def test_those_that_cannot_be_tested_are_passed_over_and_named(count: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(1, count - 1))
    broken = data.draw(st.sets(st.integers(1, count - 2), max_size=count))

    def shown(at: int) -> Shown:
        return Shown.UNRESOLVED if at in broken else Shown.FAIL if at >= turn else Shown.PASS

    found = first_bad(count, shown)
    assert found.last_good < turn <= found.first_bad
    assert set(found.untested) == set(range(found.last_good + 1, found.first_bad))
    assert shown(found.last_good) is Shown.PASS
    assert shown(found.first_bad) is Shown.FAIL


def test_bounds() -> None:
    assert [fewest_runs(n) for n in (1, 2, 30, 40, 64, 10_000)] == [0, 1, 5, 6, 6, 14]
    assert fewest_runs(10_000, 5) == 60
