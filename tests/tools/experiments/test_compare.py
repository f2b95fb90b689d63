"""What chance may do: the exact sum over all outcomes for events, the spending of the looks for numbers."""

from __future__ import annotations

import itertools
import math

from traindx_tools.experiments.compare import EARLY, EVENT_LOOKS, LOOKS, difference, separated
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


def test_a_sure_difference_below_five_per_cent_is_no_effect() -> None:
    found = difference(measured(1.0, 1.0001, 0.9999), measured(0.98, 0.9801, 0.9799), 0.007)
    assert found.high < 0
    assert (found.is_effect, found.is_none) == (False, True)


def test_controls_that_never_differ_are_judged_by_what_one_record_scatters() -> None:
    still = difference(measured(1.0, 1.0, 1.0, noise=0.3), measured(0.5, noise=0.3), 0.004)
    moved = difference(measured(1.0, 1.0, 1.0, noise=0.01), measured(0.5, noise=0.01), 0.004)
    assert (still.is_effect, moved.is_effect) == (False, True)
