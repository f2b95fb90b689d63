"""L224: a score that falls steadily, its healthy twins, and what is too short or broken."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.on_logs.run import Floats, Run

X = np.arange(200.0) / 200
RULE = "l224_score_falls"


def scatter(seed: int, size: float) -> Floats:
    return np.random.default_rng(seed).normal(0, size, len(X))


def score(values: Floats, name: str = "accuracy", group: str = "train", **more: Floats) -> Run:
    others = [series(n, list(v), every=10) for n, v in more.items()]
    return run(series(name, list(values), group=group, every=10), *others)


@pytest.mark.parametrize("group", ["train", "validation"])
def test_an_accuracy_that_falls_is_told_with_both_levels(group: str) -> None:
    (found,) = findings(score(0.9 - 0.4 * X + scatter(0, 0.03), group=group, loss=2 * np.exp(-5 * X) + 0.3), RULE)
    assert found.measured["loss_falls"] is True
    assert "falls steadily, from 0.8" in found.statement
    assert "while loss falls as well" in found.statement


def test_a_reward_that_falls_is_told() -> None:
    (found,) = findings(score(200 - 150 * X + scatter(1, 10), "reward"), RULE)
    assert found.measured["loss_falls"] is False


@pytest.mark.parametrize("values", [
    1 - 0.9 * np.exp(-5 * X) + scatter(2, 0.02), 0.9 + scatter(3, 0.05), 0.9 - 0.03 * X + scatter(4, 0.02),
    0.5 + 0.3 * np.sin(20 * X) + scatter(5, 0.02),
], ids=["rises", "scatters", "drifts by little", "swings"])
def test_its_healthy_twins_are_left_alone(values: Floats) -> None:
    assert findings(score(values), RULE) == []


def test_harder_augmentation_lowers_the_training_score_alone() -> None:
    held = series("accuracy", list(0.5 + 0.4 * X), group="validation", every=10)
    falling = series("accuracy", list(0.9 - 0.3 * X + scatter(6, 0.02)), every=10)
    assert findings(run(falling, held), RULE) == []


def test_a_cost_that_becomes_less_negative_rises() -> None:
    assert findings(score(-200 + 150 * X + scatter(7, 5), "reward"), RULE) == []


def test_a_short_log_and_a_broken_end_tell_nothing() -> None:
    assert findings(run(series("accuracy", [0.9, 0.8, 0.7, 0.6])), RULE) == []
    broken = 0.9 - 0.4 * X + scatter(8, 0.02)
    broken[-1] = np.nan
    assert findings(score(broken), RULE) == []


def detector(*falls: float, records: int = 15) -> Run:
    x = np.arange(float(records))
    noise = np.random.default_rng(9)
    parts = [series(f"bbox_map_{i}", list(0.4 - by * x + noise.normal(0, 0.003, records)), group="validation", every=50)
             for i, by in enumerate(falls)]
    return run(series("loss", list(2 / (1 + x)), every=50), *parts)


def test_scores_of_parts_fall_over_few_evaluations() -> None:
    (found,) = findings(detector(0.015, 0.013, 0.0), RULE)
    assert "validation bbox_map_0 falls steadily" in found.statement


@pytest.mark.parametrize("held", [detector(0.015, 0.0, -0.01), detector(0.001, 0.001), detector(0.02, 0.02, records=8)],
                         ids=["one part of three", "by little", "too few evaluations"])
def test_parts_that_are_left_alone(held: Run) -> None:
    assert findings(held, RULE) == []


def test_few_values_of_a_training_score_tell_nothing() -> None:
    assert findings(run(series("accuracy", list(0.9 - 0.03 * np.arange(15.0)), every=50)), RULE) == []


def test_a_part_without_a_value_is_passed_over() -> None:
    empty = series("bbox_map_s", [np.nan] * 15, group="validation", every=50)
    assert len(findings(run(*detector(0.015, 0.013).series, empty), RULE)) == 1
