"""A change is told where it begins: not at the lowest value that came by chance long before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.on_logs.curves.onsets import rise_begins, step_at

RNG = np.random.default_rng(3)
LEVEL = 1.1 + RNG.normal(0, 0.1, 120)
RAMP = 1.2 * np.exp(1.3 * np.arange(1, 6))


def test_a_rise_begins_at_the_last_value_of_the_level_before() -> None:
    y = np.concatenate([LEVEL, RAMP])
    assert int(np.argmin(y)) < 110, "the lowest value lies elsewhere"
    assert rise_begins(y, len(y) - 1) in (119, 120)


@pytest.mark.parametrize(("values", "expected"), [([3.0, 1.0, 5.0, 50.0], 1), ([1.0], 0), ([2.0, 2.0, 2.0], 0)])
def test_few_values_have_no_scatter(values: list[float], expected: int) -> None:
    assert rise_begins(np.array(values), len(values) - 1) == expected


def test_two_levels_are_a_step_and_a_course_is_none() -> None:
    two = np.concatenate([np.full(40, 1.0), np.full(30, 2.0)]) + RNG.normal(0, 0.02, 70)
    assert step_at(two) == 40
    assert step_at(np.linspace(1, 2, 70)) is None
    assert step_at(np.full(70, 1.0)) is None
    assert step_at(np.array([1.0, 2.0])) is None


def test_the_gradient_rises_where_it_leaves_its_scatter_and_no_earlier() -> None:
    y = [*LEVEL, *RAMP, math.nan, math.nan]
    loss = [*(2 - 0.01 * np.arange(len(LEVEL))), 2.0, 4.0, 8.0, 12.0, 20.0, math.nan, math.nan]
    found = findings(run(series("grad_norm", y, every=10), series("loss", loss, every=10)), "l102_gradient_explosion",
                     "l101_nonfinite")
    assert {f.rule for f in found} == {"L101", "L102"}
    explosion = next(f for f in found if f.rule == "L102")
    assert explosion.where is not None
    assert explosion.measured["from_position"] in (1200.0, 1210.0)
    assert "at step 120" in explosion.statement or "at step 1210" in explosion.statement


def test_a_gradient_that_stays_in_its_scatter_is_no_explosion() -> None:
    assert findings(run(series("grad_norm", LEVEL, every=10)), "l102_gradient_explosion") == []


def test_speed_that_halves_at_one_step_is_told_there() -> None:
    speed = np.concatenate([np.full(170, 32000.0), np.full(130, 15600.0)]) + RNG.normal(0, 100, 300)
    (found,) = findings(run(series("tokens_per_second", speed, every=10)), "l404_throughput_decay")
    assert found.measured["abrupt"] is True
    assert found.measured["position"] == 1710.0
    assert "at step 1700 to" in found.statement
    assert "longer and longer" not in found.title
    slower = findings(run(series("tokens_per_second", 32000 / (1 + np.arange(300) / 100), every=10)),
                      "l404_throughput_decay")
    assert [f.measured.get("abrupt", False) for f in slower] == [False]


def test_a_spike_before_nan_does_not_end_the_log() -> None:
    loss = [*(1 + RNG.normal(0, 0.01, 60)), 12.0, math.nan, math.nan]
    (found,) = findings(run(series("loss", loss, every=10)), "l107_spike")
    assert "where the log ends" not in found.statement
    assert found.statement.endswith("its last finite value")
    (found,) = findings(run(series("loss", loss[:-2], every=10)), "l107_spike")
    assert found.statement.endswith("where the log ends")


def test_memory_is_told_with_the_values_of_the_log() -> None:
    gib = [round(9.1 + 0.45 * i, 1) for i in range(1, 31)]
    (found,) = findings(run(series("memory", [1024 * g for g in gib])), "l401_memory_growth")
    assert f"from {gib[6]} GiB at step 7 to {gib[-1]} GiB at step 30" in found.statement
