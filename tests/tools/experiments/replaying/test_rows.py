"""Rows that carry a symptom are found by halving, with few runs; where it is not the rows, that is seen soon."""

from __future__ import annotations

import random

import pytest

from traindx_tools.experiments.replaying.rows import NoTime, alone, find_rows, most_runs, without


@pytest.mark.parametrize(("count", "bad"), [(n, b) for n in (2, 3, 7, 8, 32, 33, 300) for b in (0, n // 2, n - 1)])
def test_a_row_that_is_bad_by_itself_is_found(count: int, bad: int) -> None:
    found = find_rows(count, lambda rows: bad in rows, most_runs(count))
    assert (found.found, found.gone, found.carry) == ((bad,), True, True)
    assert found.runs <= 2 * count.bit_length() + 3


@pytest.mark.parametrize("bad", [{3, 17}, {0, 1, 2}, {5, 31}])
def test_several_are(bad: set[int]) -> None:
    found = find_rows(32, lambda rows: bool(bad & set(rows)), most_runs(32))
    assert (set(found.found), found.carry) == (bad, True)


@pytest.mark.parametrize("count", [2, 8, 32, 256])
def test_a_symptom_of_every_row_is_none_of_the_rows(count: int) -> None:
    found = find_rows(count, lambda _: True, most_runs(count))
    assert not found.carry


def test_a_symptom_of_the_whole_batch_alone_is_none_of_a_row() -> None:
    found = find_rows(32, lambda rows: len(set(rows)) > 20, most_runs(32))
    assert (found.found, found.carry) == ((), False)


def test_the_bound_on_runs_holds() -> None:
    with pytest.raises(NoTime):
        find_rows(64, lambda rows: bool({1, 20, 40} & set(rows)), 5)


@pytest.mark.parametrize("seed", range(30))
def test_batches_keep_their_size(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(2, 40)
    some = sorted(draw.sample(range(count), draw.randint(1, count - 1)))
    assert len(alone(some, count)) == len(without(some, count)) == count
    assert set(alone(some, count)) == set(some)
    assert not set(without(some, count)) & set(some)
