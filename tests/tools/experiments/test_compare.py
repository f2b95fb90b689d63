"""What chance may do: the exact sum over all outcomes for events, the spending of the looks for numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.experiments.compare import CLEAR, EARLY, EVENT_LOOKS, LOOKS, apart, difference, separated
from traindx_tools.experiments.reading import Measured


def called(chance: float) -> float:
    """The probability that ten runs without an effect, five of each, are called separated at one of the looks."""
    total = 0.0
    for runs in itertools.product((True, False), repeat=10):
        old, new = runs[:5], runs[5:]
        if any(separated(old[:c], new[:x]) for c, x in EVENT_LOOKS):
            total += math.prod(chance if r else 1 - chance for r in runs)
    return total


def test_an_event_without_an_effect_is_rarely_called_one_whatever_its_chance() -> None:
    worst = max(called(p / 50) for p in range(1, 50))
    assert 0.03 < worst < 0.039


def test_the_looks_spend_less_than_three_per_cent() -> None:
    assert sum((k.alpha + len(EARLY) * k.early) * len(k.ways) / 2 for k in LOOKS) < 0.03


def test_two_basins_are_rarely_called_an_effect_whatever_their_chances() -> None:
    """Runs that end in one of two places: what arms that lie wholly apart are called, summed over all outcomes."""
    def called_one(chance: float) -> float:
        total = 0.0
        for runs in itertools.product((0, 1), repeat=10):
            old, new = runs[:5], runs[5:]
            ways = [k for k in LOOKS for c, x in [(set(old[:k.controls]), set(new[:k.changes]))]
                    if len(c) == len(x) == 1 and c != x and ("better" if c == {1} else "worse") in k.ways]
            total += math.prod(chance if r else 1 - chance for r in runs) if ways else 0.0
        return total

    assert 0.03 < max(called_one(p / 50) for p in range(1, 50)) < 0.05


def measured(*values: float, noise: float = 0.0) -> list[Measured]:
    return [Measured(v, noise, abs(v)) for v in values]


def test_an_effect_needs_to_exceed_the_spread() -> None:
    wide = difference(measured(1.0, 1.4, 0.6), measured(0.5), 0.004)
    narrow = difference(measured(1.0, 1.004, 0.996), measured(0.5), 0.004)
    assert (wide.is_effect, wide.is_none) == (False, False)
    assert (narrow.is_effect, narrow.is_none) == (True, False)
    assert narrow.low < -0.5 < narrow.high


def test_a_sure_difference_below_five_per_cent_is_told_as_small_and_not_as_none() -> None:
    found = difference(measured(1.0, 1.0001, 0.9999), measured(0.98, 0.9801, 0.9799), 0.007)
    assert found.high < 0
    assert (found.is_effect, found.is_none, found.is_small) == (False, False, True)


@given(level=st.floats(1e-6, 1e6), share=st.floats(0.001, 0.5), ratio=st.floats(1.0, 1000.0), count=st.integers(2, 5),
       spreads=st.floats(CLEAR, 50.0), seed=st.integers(0, 2**16))
def test_what_is_better_by_three_spreads_is_never_none_whatever_the_unit(level: float, share: float, ratio: float,
                                                                         count: int, spreads: float, seed: int) -> None:
    """`ratio`: the size of a whole beside what is measured of it (a loss beside how far it fell)."""
    rng = np.random.default_rng(seed)
    old, new = level * (1 + share * rng.standard_normal(3)), level * (1 + share * rng.standard_normal(count))
    squares = float(((old - old.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum())
    spread = math.sqrt(squares / (count + 1))
    new = new - new.mean() + old.mean() - 1.0001 * spreads * spread
    arms = [[Measured(float(v), 0.0, ratio * level) for v in arm] for arm in (old, new)]
    assert not difference(*arms, 0.008).is_none


@given(power=st.integers(-30, 30), values=st.lists(st.floats(0.5, 2.0), min_size=5, max_size=6))
def test_another_unit_is_the_same_verdict(power: int, values: list[float]) -> None:
    told = [difference(measured(*(u * v for v in values[:3])), measured(*(u * v for v in values[3:])), 0.01)
            for u in (1.0, 2.0**power)]
    assert told[0].is_effect == told[1].is_effect
    assert told[0].is_none == told[1].is_none


def test_a_fall_that_is_six_times_as_large_is_an_effect_beside_a_loss_that_hardly_moves() -> None:
    """5 % of the whole loss are more than it falls at all: that is no measure of what a change does to the fall."""
    old = [Measured(v, 0.0005, 1.0) for v in (0.005, 0.0055, 0.0045)]
    new = [Measured(v, 0.0005, 1.0) for v in (0.030, 0.031)]
    assert difference(old, new, 0.008).is_effect
    assert apart(old[0], new[0]) < 0.025


def test_controls_that_never_differ_are_judged_by_what_one_record_scatters() -> None:
    still = difference(measured(1.0, 1.0, 1.0, noise=0.3), measured(0.5, noise=0.3), 0.004)
    moved = difference(measured(1.0, 1.0, 1.0, noise=0.01), measured(0.5, noise=0.01), 0.004)
    assert (still.is_effect, moved.is_effect) == (False, True)
