"""Impossible values and learning rates of 0: what is seen, and what has the same shape and is in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.finding import Finding
from traindx_tools.on_logs.curves.metric_ranges import range_of
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.run import Series

LOSS = 0.4 + 2 * np.exp(-np.arange(60) / 15)
NOISE = np.random.default_rng(0).normal(size=60)


def named(original: str, values: object, group: str = "train") -> Series:
    name = identify(original)
    return replace(series(name.canonical, values, group=name.group or group), original=original)  # type: ignore[arg-type]


def impossible(*several: Series) -> list[Finding]:
    return findings(run(*several), "l111_impossible_value")


@pytest.mark.parametrize(("original", "values", "value"), [
    ("val/accuracy", [0.5, 0.7, -0.1, 0.8], -0.1), ("iou", [30.0, 80.0, 140.0], 140.0),
    ("train/bce_loss", [0.6, 0.2, -0.3, -0.9], -0.3), ("cross_entropy", [2.3, 1.0, -0.5], -0.5),
    ("train/mse", [0.5, -0.01, 0.2], -0.01), ("clip_frac", [0.1, -0.2, 0.1], -0.2), ("r2", [0.2, 1.4, 0.3], 1.4),
    ("ppl", [40.0, 0.2, 30.0], 0.2), ("val_wer", [0.9, -0.5, 0.4], -0.5), ("loss/l1", [1.0, -1.0, 1.0], -1.0),
    ("ssim", [0.2, 1.5, 0.3], 1.5), ("learning_rate", [1e-3, -1e-4, -2e-4], -1e-4),
])
def test_a_value_outside_of_its_range(original: str, values: list[float], value: float) -> None:
    (found,) = impossible(named(original, values))
    assert found.measured["kind"] == "outside"
    assert found.measured["value"] == value
    assert found.where.step == values.index(value) + 1


@pytest.mark.parametrize(("original", "values"), [
    ("val/accuracy", [0.0, 0.5, 1.0, 1.0]), ("val/accuracy", [12.0, 55.0, 100.0]), ("wer", [1.4, 1.0, 0.6]),
    ("neg_mse", [-0.5, -0.2]), ("train/nll", [0.5, -0.7]), ("elbo", [-90.0, -80.0]), ("kl", [0.1, -0.01]),
    ("policy_loss", [-0.1, 0.1]), ("r2", [-3.0, 0.9]), ("loss", [0.5, -2.0, -3.0]), ("entropy", [1.0, -0.5]),
    ("mse_improvement", [-0.5, 0.2]), ("ssim", [-0.2, 0.9]), ("accuracy", [0.99, 1.0000001, 1.0]),
    ("log_mse", [-2.0, -3.0]), ("explained_variance", [-5.0, 0.9]),
])
def test_what_the_definition_allows(original: str, values: list[float]) -> None:
    assert impossible(named(original, values)) == []


def test_not_finite_values_and_a_guessed_name_are_left_alone() -> None:
    assert impossible(named("accuracy", [np.nan, np.inf, -np.inf, 0.5])) == []
    assert range_of(replace(named("accuracy", [5.0, -1.0]), inferred=True)) is None


def test_a_loss_that_nothing_computed() -> None:
    (found,) = impossible(named("loss", [-1.0] * 30))
    assert found.measured["kind"] == "placeholder"
    assert "placeholder" in found.statement
    assert impossible(named("loss", [-1.0] * 4)) == []
    assert impossible(named("loss", [-1.5] * 30)) == []  # may be a clamp at its bound
    assert impossible(named("loss", [-1.0] * 29 + [-0.9])) == []


def test_an_error_rate_of_exactly_everything() -> None:
    assert impossible(named("val/wer", [100.0] * 6))[0].measured["kind"] == "all-wrong"
    assert impossible(named("val/wer", [100.0, 100.0, 100.0, 96.2, 80.0, 61.0])) == []
    assert impossible(named("val/wer", [100.0] * 3)) == []


# the learning rate


def stretches(values: object, **options: object) -> list[Finding]:
    rate = series("learning_rate", values, **options)  # type: ignore[arg-type]
    return findings(run(series("loss", LOSS[:len(rate)]), rate), "l312_lr_zero_stretch")


def test_a_rate_of_0_and_then_its_peak() -> None:
    cosine = 3e-4 * (1 + np.cos(np.linspace(0, 3, 130))) / 2
    (found,) = stretches([0.0] * 20 + list(cosine), every=10)
    assert (found.where.step, found.where.end_step) == (10, 200)
    assert found.measured["after"] == pytest.approx(3e-4)
    assert found.measured["onset"] == "from-start"


def test_a_pause_in_the_middle() -> None:
    (found,) = stretches([1.25e-3] * 20 + [0.0] * 10 + [1.25e-3] * 20)
    assert (found.measured["onset"], found.measured["records"]) == ("later", 10)


@pytest.mark.parametrize("values", [
    np.linspace(0, 1e-3, 50), [0.0] + [1e-3] * 40, [0.0, 0.0] + [1e-3] * 40, [1e-3] * 40 + [0.0] * 10, [0.0] * 40,
    np.abs(np.sin(np.linspace(0, 9, 60))) * 1e-3, np.round(np.linspace(0, 1e-3, 60), 4),
    np.round(1e-4 * np.minimum(1, np.arange(60) / 50), 4),
], ids=["ramp", "first record", "two records", "ends at 0", "all 0", "cycles", "printed short", "one printed place"])
def test_zeros_that_belong_to_a_schedule(values: object) -> None:
    assert stretches(values) == []


def test_a_group_that_is_held_back_is_left_alone() -> None:
    rates = series("learning_rate", [1e-3] * 40), series("learning_rate/backbone", [0.0] * 20 + [1e-4] * 20)
    assert findings(run(series("loss", LOSS[:40]), *rates), "l312_lr_zero_stretch") == []
