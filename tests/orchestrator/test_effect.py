"""The promised metric against the spread: what moved, what may be the dice, what did not come."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from traindx.effect import Level, compared, level_of, spread
from traindx.promised import Promise

DOWN = Promise("loss", "down")


def curve(end: float, noise: float = 0.0, seed: int = 0, count: int = 200) -> NDArray[np.float64]:
    falling = end + (2.3 - end) * np.exp(-np.arange(count) / 20)
    return falling + noise * np.random.default_rng(seed).normal(size=count)


def outcome(before: list[NDArray[np.float64]], after: list[NDArray[np.float64]], promise: Promise = DOWN) -> str | None:
    found = compared(promise, [{"loss": level_of(b)} for b in before], [{"loss": level_of(a)} for a in after])
    return None if found is None else found.outcome


def test_a_loss_that_falls_far_below_the_old_one_moved() -> None:
    flat = np.full(200, 2.3) + 0.05 * np.random.default_rng(1).normal(size=200)
    assert outcome([flat], [curve(0.4, 0.05)]) == "moved"


def test_a_loss_within_the_noise_of_one_record_is_not_shown() -> None:
    assert outcome([curve(0.1089, 0.02, seed=1)], [curve(0.0806, 0.02, seed=2)]) == "within"


def test_runs_of_the_unfixed_code_that_differ_are_a_spread() -> None:
    """The new run lies no further from them than they do from each other."""
    unfixed = [curve(0.50), curve(0.80)]
    assert outcome(unfixed, [curve(0.30)]) == "within"
    assert outcome([unfixed[0]], [curve(0.30)]) == "moved"


def test_the_same_in_every_record_is_told_apart_from_nearly_the_same() -> None:
    assert outcome([curve(0.1)], [curve(0.1)]) == "same"
    assert outcome([curve(0.1)], [curve(0.1000001)]) == "within"


def test_the_other_way_beyond_the_spread_speaks_against() -> None:
    assert outcome([curve(0.4, 0.01)], [curve(1.5, 0.01)]) == "against"


def test_a_metric_that_was_logged_once_needs_five_per_cent() -> None:
    one = [np.array([1.0])]
    assert outcome(one, [np.array([0.97])]) == "within"
    assert outcome(one, [np.array([0.9])]) == "moved"


def test_nan_that_is_gone_moved_and_nan_that_came_speaks_against() -> None:
    broken = np.append(curve(0.4), np.nan)
    assert outcome([broken], [curve(0.4)]) == "moved"
    assert outcome([broken], [broken + 1e-9]) == "within"
    assert outcome([curve(0.4)], [broken]) == "against"
    assert outcome([broken], [curve(0.4)], Promise("loss", "finite")) == "moved"
    assert outcome([curve(0.4)], [curve(0.2)], Promise("loss", "finite")) == "within", "it was finite before"


def test_what_was_finite_before_as_well_shows_nothing_bit_for_bit_the_same_or_not() -> None:
    """A command that ends before the fault comes is the command's doing, and not the fix's."""
    finite, broken = Promise("loss", "finite"), np.append(curve(0.4), np.nan)
    found = compared(finite, [{"loss": level_of(curve(0.4))}], [{"loss": level_of(curve(0.4))}])
    assert found is not None
    assert (found.outcome, "does not show the fault on the unfixed code" in found.said) == ("within", True)
    assert outcome([broken], [broken], finite) == "same", "here the unfixed code shows it"


def test_what_stood_still_moves() -> None:
    moves = Promise("loss", "moves")
    assert outcome([np.full(50, 0.6931)], [curve(0.4)], moves) == "moved"
    assert outcome([curve(0.5)], [curve(0.4)], moves) == "within"


def test_what_was_not_measured_by_both_is_no_comparison() -> None:
    assert compared(Promise("kl", "up"), [{"loss": Level(1.0)}], [{"loss": Level(0.5)}]) is None
    assert compared(DOWN, [{}], [{"loss": Level(0.5)}]) is None
    assert compared(DOWN, [], [{"loss": Level(0.5)}]) is None


def test_a_promise_without_a_group_takes_the_validation_where_only_that_is_logged() -> None:
    found = compared(DOWN, [{"validation loss": Level(1.0)}], [{"validation loss": Level(0.5)}])
    assert found is not None
    assert found.series == "validation loss"
    assert "went from 1 to 0.5: beyond the spread of 0.05" in found.said


def test_a_trend_is_no_noise() -> None:
    steep = np.linspace(10, 0, 100)
    assert level_of(steep).noise < 0.2
    assert level_of(np.array([np.nan])).finite is False


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [np.inf, 1.0, 1.0], [np.nan] * 5])
def test_a_level_survives_json(values: list[float]) -> None:
    level = level_of(np.array(values))
    again = Level.from_json(level.to_json())
    assert str(again) == str(level)


def test_more_runs_that_agree_make_the_spread_narrower() -> None:
    two, three = [Level(1.0), Level(1.3)], [Level(1.0), Level(1.3), Level(1.15)]
    assert spread(three, [Level(0.5)]) < spread(two, [Level(0.5)])
