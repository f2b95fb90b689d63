"""The judge, judged: experiments without an effect, experiments with one, through the engine that runs real ones."""

from __future__ import annotations

import pytest

from traindx_tools.experiments.simulated import DRAWS, World, simulate

EXPERIMENTS = 200
MOST_FALSE = 10
"""5 % of them."""


def words(world: World, count: int) -> list[str]:
    made = (World(**{**vars(world), "number": i}) for i in range(count))
    return [simulate(w)[0].verdict.word for w in made]


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS)
def test_of_200_experiments_without_an_effect_at_most_five_per_cent_are_called_one(draw: str) -> None:
    said = words(World(draw=DRAWS[draw]), EXPERIMENTS)
    assert sum(w in ("removes", "moves") for w in said) <= MOST_FALSE


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.3, 0.6, 0.9])
def test_an_event_that_comes_by_chance_is_rarely_taken_for_removed(chance: float) -> None:
    said = words(World(chance=chance), EXPERIMENTS)
    assert sum(w == "removes" for w in said) <= MOST_FALSE


def test_a_large_effect_is_seen_and_in_which_way() -> None:
    results = [simulate(World(number=i, effect=-10))[0] for i in range(6)]
    assert [r.verdict.word for r in results] == ["moves"] * 6
    assert all(r.verdict.better for r in results)
    worse = simulate(World(effect=10))[0]
    assert (worse.verdict.word, worse.verdict.better) == ("moves", False)


def test_a_program_without_chance_says_no_effect() -> None:
    result, place = simulate(World(spread=0.0, noise=0.0))
    assert result.verdict.word == "no-effect"
    assert place.runs == 2


def test_an_event_that_always_comes_and_goes_with_the_change_takes_five_runs() -> None:
    results = [simulate(World(number=i, chance=1.0, effect=-1.0)) for i in range(10)]
    assert [r.verdict.word for r, _ in results] == ["removes"] * 10
    assert all(len(r.made) == 5 for r, _ in results)
    assert all(5 <= place.runs <= 7 for _, place in results), "a changed run goes further where a placebo is later"


def test_too_few_repeats_are_no_proof() -> None:
    result, _ = simulate(World(chance=1.0, effect=-1.0), repeats=1)
    assert (result.verdict.word, result.verdict.lacks) == ("inconclusive", "repeats")
