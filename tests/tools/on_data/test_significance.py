"""Tail probabilities against tables, robust comparison of siblings, and the exact assignment."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.robust import standing_out
from traindx_tools.on_data.rules.d102_extreme_rows import gap_in
from traindx_tools.on_data.significance import chi2_tail, normal_tail, paired_tail, share_tail, student_tail
from traindx_tools.on_data.summary import row_digests, sequence_digests


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (normal_tail(1.959964), 0.025),
        (student_tail(2.570582, 5), 0.025),
        (student_tail(12.7062, 1), 0.025),
        (student_tail(6.869, 5), 0.0005),
        (chi2_tail(3.841459, 1), 0.05),
        (chi2_tail(18.307, 10), 0.05),
        (chi2_tail(124.342, 100), 0.05),
        (chi2_tail(2.0, 10), 0.99634),
    ],
)
def test_tables(got: float, expected: float) -> None:
    assert got == pytest.approx(expected, rel=2e-3)


def test_tails_that_are_tiny_stay_numbers() -> None:
    assert 0.0 <= chi2_tail(5000.0, 3) < 1e-300
    assert 0.0 <= student_tail(1e9, 3) < 1e-20
    assert 0.0 <= share_tail(10_000, 10_000, 0.01) < 1e-300


@pytest.mark.parametrize(("hits", "of", "share"), [(5, 10, 0.1), (3, 100, 0.01), (60, 100, 0.5), (9, 9, 0.5)])
def test_the_bound_of_a_share_is_never_below_its_exact_tail(hits: int, of: int, share: float) -> None:
    from math import comb

    exact = sum(comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(hits, of + 1))
    assert exact <= share_tail(hits, of, share) * (1 + 1e-9)


def test_more_gained_than_lost_is_unlikely_by_chance() -> None:
    assert paired_tail(40, 2) < 1e-6
    assert paired_tail(5, 5) == 1.0
    assert paired_tail(0, 0) == 1.0


def test_false_alarms_of_the_comparison_of_siblings_are_rare() -> None:
    rng = np.random.default_rng(0)
    alarms = sum(bool(standing_out(rng.normal(size=n), 1.0, n, 0.0)) for n in (4, 6, 12, 40) for _ in range(1000))
    assert alarms <= 8  # 4,000 sets at a level of 1e-3


def test_one_that_stands_out_is_found_and_many_are_not() -> None:
    values = np.array([0.0, 0.1, -0.1, 5.5, 0.05, 0.0])
    assert [o.index for o in standing_out(values, 0.1, 10, 1.0)] == [3]
    assert standing_out(np.array([0.0, 5.0, -5.0, 10.0, 3.0, -8.0]), 0.1, 10, 1.0) == []
    assert standing_out(np.array([0.0, 50.0]), 0.1, 1, 1.0) == []


@pytest.mark.parametrize("tail", [0.7, 1.0, 2.0, 4.0])
def test_false_alarms_of_gaps_are_rare_in_tails_of_any_weight(tail: float) -> None:
    rng = np.random.default_rng(0)
    gaps = [gap_in(rng.pareto(tail, 1000) + 1.0) for _ in range(400)]
    assert sum(g is not None and g.p < 1e-3 for g in gaps) <= 3


def test_a_gap_in_a_bell_curve_is_found() -> None:
    sizes = np.abs(np.random.default_rng(0).normal(size=1000))
    sizes[[3, 77]] = 400.0
    gap = gap_in(sizes)
    assert gap is not None
    assert (gap.count, gap.p < 1e-9) == (2, True)


def test_the_assignment_is_the_cheapest() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 6):
        cost = rng.normal(size=(n, n))
        best = min(sum(cost[i, p[i]] for i in range(n)) for p in itertools.permutations(range(n)))
        found = assigned(cost)
        assert sorted(found) == list(range(n))
        assert cost[np.arange(n), found].sum() == pytest.approx(best)


def test_hashes_tell_rows_apart_and_equal_rows_are_equal() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (5000, 40)).astype(np.uint8)
    rows[17] = rows[3]
    digests = row_digests(rows)
    assert digests[17] == digests[3]
    assert len(np.unique(digests)) == len(np.unique(rows, axis=0))
    wide = rng.normal(size=(50, 100_000)).astype(np.float32)
    assert len(np.unique(row_digests(wide))) == 50


def test_hashes_of_sequences_know_order_and_length() -> None:
    items = np.array([1, 2, 2, 1, 1, 2, 1, 2, 0])
    digests = sequence_digests(items, np.array([0, 2, 4, 6, 9]))
    assert digests[0] == digests[2]
    assert len(np.unique(digests)) == 3
