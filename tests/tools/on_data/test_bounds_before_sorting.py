"""What rules out before the exact computation never rules out what that would find."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.odd_parts import odd_shard
from traindx_tools.on_data.significance import distance, distance_bounds
from traindx_tools.on_data.stretches import commonest, heaviest


def by_definition(a: Array, b: Array) -> float:
    every = np.concatenate([a, b])
    below = [np.searchsorted(x, every, "right") / len(x) for x in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


@pytest.mark.parametrize("kinds", [2, 5, 0])
def test_the_distance_is_that_of_the_definition_also_where_values_recur(kinds: int) -> None:
    rng = np.random.default_rng(kinds)
    for size in (1, 3, 40, 900):
        a, b = (np.sort(rng.integers(0, kinds, n) if kinds else rng.normal(size=n)) for n in (size, 120))
        assert distance(a, b) == distance(b, a) == by_definition(a, b)


def test_no_values_have_no_distance() -> None:
    assert np.isnan(distance(np.empty(0), np.arange(3.0)))


@pytest.mark.parametrize("kinds", [2, 5, 0])
def test_no_part_is_further_from_the_others_than_its_bound(kinds: int) -> None:
    rng = np.random.default_rng(10 + kinds)
    parts = [np.sort(rng.integers(0, kinds, 300) if kinds else rng.normal(k, 1.0, 300 + k)) for k in range(5)]
    exact = [distance(p, np.sort(np.concatenate([q for j, q in enumerate(parts) if j != i])))
             for i, p in enumerate(parts)]
    assert (distance_bounds(parts) >= exact).all()


def test_a_bound_is_near_and_an_odd_shard_is_still_found() -> None:
    rng = np.random.default_rng(3)
    parts = [np.sort(rng.normal(size=4000)) for _ in range(6)]
    assert distance_bounds(parts).max() < 0.1
    parts[2] = np.sort(parts[2] + 2.0)
    found = odd_shard(parts, 10.0)
    assert found is not None
    assert found.index == 2


def test_the_commonest_stretch_is_the_heaviest_of_hits_and_misses() -> None:
    rng = np.random.default_rng(4)
    for share in (0.0, 0.2, 0.5, 1.0):
        hits = rng.random(500) < share
        assert commonest(hits) == heaviest(np.where(hits, 1.0, -1.0))
