"""A loss that creeps up (L106): seen over many records where each step of it hides in the scatter."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.on_logs.curves.steady_rise import rising_pairs
from traindx_tools.on_logs.run import Floats, Run

STEPS = np.arange(200)


def loss(values: Floats, **more: Floats) -> Run:
    return run(series("loss", list(values), every=10), *(series(n, list(v), every=10) for n, v in more.items()))


def scatter(seed: int, size: float) -> Floats:
    return np.random.default_rng(seed).normal(0, size, len(STEPS))


@pytest.mark.parametrize("seed", range(3))
def test_a_rise_of_half_a_unit_over_the_run_is_seen_though_each_step_hides_in_the_scatter(seed: int) -> None:
    (found,) = findings(loss(2.0 + 0.49 * STEPS / 200 + scatter(seed, 0.1)), "l106_divergence")
    assert found.measured["steady"] is True
    assert "rises slowly and steadily" in found.statement
    assert "(median of steps " in found.statement


def test_a_rise_after_a_fall_is_told_from_its_best_on() -> None:
    (found,) = findings(loss(2 * np.exp(-STEPS / 20) + 0.3 + 0.6 * np.maximum(0, STEPS - 80) / 120 + scatter(1, 0.02)),
                        "l106_divergence")
    assert found.measured["onset"] == "later"


@pytest.mark.parametrize("healthy", [
    2.0 + 0.04 * STEPS / 200 + scatter(2, 0.1),
    2.0 * np.exp(-STEPS / 60) + 0.5 + scatter(3, 0.05),
    2.0 + scatter(4, 0.3),
    1.5 + 0.3 * np.sin(STEPS / 8) + scatter(5, 0.05),
], ids=["less than a tenth", "falls", "scatters", "swings"])
def test_its_healthy_twins_are_left_alone(healthy: Floats) -> None:
    assert findings(loss(healthy), "l106_divergence") == []


def test_a_loss_that_rises_with_the_learning_rate_is_left_alone() -> None:
    rising = 2.0 + 0.49 * STEPS / 200 + scatter(0, 0.1)
    assert findings(loss(rising, learning_rate=1e-5 + 1e-3 * STEPS / 200), "l106_divergence") == []


def test_a_short_log_is_too_short_to_tell() -> None:
    assert findings(loss((2.0 + 0.49 * STEPS / 200)[::10]), "l106_divergence") == []


def test_values_that_are_not_finite_are_passed_over() -> None:
    broken = 2.0 + 0.49 * STEPS / 200 + scatter(0, 0.1)
    broken[50:53] = np.nan
    assert findings(loss(broken), "l106_divergence")


def test_pairs() -> None:
    assert rising_pairs(np.arange(5.0)) == 1.0
    assert rising_pairs(np.array([1.0, 1.0, 1.0])) == 0.0
