"""Spikes that come back: seen with their place; sixty healthy noisy curves, heavy tails among them, are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.finding import Finding


def spikes(loss: object, norm: object | None = None, every: int = 10) -> list[Finding]:
    several = [series("loss", loss, every=every)]  # type: ignore[arg-type]
    several += [] if norm is None else [series("grad_norm", norm, every=every)]  # type: ignore[arg-type]
    return findings(run(*several), "l112_brief_spike")


STEPS = np.arange(10, 6010, 10)
DRAWN = np.random.default_rng(3)
LEVEL = 2.9 + 8 * np.exp(-STEPS / 350) + 0.9 * np.exp(-STEPS / 2500)
LOSS = LEVEL + DRAWN.normal(0, 0.05, len(STEPS))
NORM = 0.45 * np.exp(DRAWN.normal(0, 0.1, len(STEPS)))
KICK = np.where(STEPS >= 3700, 1.4 * np.exp(-(STEPS - 3700) / 30), 0.0)


def test_a_loss_and_a_gradient_that_jump_together_and_come_back() -> None:
    (found,) = spikes(LOSS + KICK, NORM + 6.4 * KICK)
    assert found.severity.value == "low"
    assert found.where.step == 3700
    assert found.measured["base"] == pytest.approx(3.1, abs=0.1)
    assert found.measured["peak"] == pytest.approx(4.5, abs=0.2)
    assert found.measured["gradient_ratio"] == pytest.approx(20, rel=0.3)


def test_a_loss_or_a_gradient_alone_is_a_remark() -> None:
    (loss,) = spikes(LOSS + KICK)
    (norm,) = spikes(LOSS, NORM + 6.4 * KICK)
    assert (loss.severity.value, loss.measured["metric"]) == ("info", "loss")
    assert (norm.severity.value, norm.measured["metric"]) == ("info", "grad_norm")


def test_one_wild_batch_is_a_remark() -> None:
    one = (STEPS == 3700) * 1.4
    assert [f.severity.value for f in spikes(LOSS + one, NORM + 6.4 * one)] == ["info"]


def test_without_the_kick_there_is_nothing() -> None:
    assert spikes(LOSS, NORM) == []


def test_what_stays_up_or_comes_at_each_epoch_is_for_other_rules() -> None:
    stays = np.where(STEPS >= 3700, 1.4, 0.0)
    epochs = np.where((STEPS // 10) % 60 < 6, 0.8, 0.0)
    assert spikes(LOSS + stays, NORM) == []
    assert spikes(LOSS + epochs) == []


NOISES = {
    "normal": lambda g, n: g.normal(0, 0.05, n),
    "laplace": lambda g, n: g.laplace(0, 0.05, n),
    "student 3": lambda g, n: 0.04 * g.standard_t(3, n),
    "student 2": lambda g, n: 0.03 * g.standard_t(2, n),
    "log-normal": lambda g, n: 0.1 * (np.exp(g.normal(0, 0.8, n)) - 1),
    "exponential": lambda g, n: 0.05 * g.exponential(1.0, n),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("records", [60, 600, 20_000])
def test_healthy_noise_is_never_more_than_a_remark(noise: str, records: int) -> None:
    """Ten curves of each kind and length, gradient norms with heavy tails beside them; longer is not more alarming."""
    loud = []
    for seed in range(10):
        g = np.random.default_rng(1000 * records + seed)
        x = np.linspace(0, 1, records)
        loss = 2 + 3 * np.exp(-6 * x) + NOISES[noise](g, records)
        norm = np.exp(0.3 * g.standard_t(3, records).clip(-8, 8))
        loud += [f for f in spikes(np.maximum(loss, 0.01), norm) if f.severity.rank > 0]
    assert loud == []


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 50, [0.0] * 50, [float("nan")] * 50, [1e300] * 40])
def test_odd_series_are_survived(values: list[float]) -> None:
    assert spikes(values, values) == []


def test_the_scatter_is_that_beside_the_spike_and_not_that_of_a_tail_at_1e_12() -> None:
    fallen = np.where(np.arange(600) < 250, LEVEL + DRAWN.normal(0, 0.05, 600), 1e-12 * np.exp(DRAWN.normal(0, 1, 600)))
    (found,) = spikes(fallen + (STEPS == 1000) * 1.4)
    assert float(found.measured["times_scatter"]) < 60
    assert spikes(fallen) == []
