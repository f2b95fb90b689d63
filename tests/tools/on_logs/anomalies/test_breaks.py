"""Breaks of level in short series, and what moves by nature."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.on_logs.anomalies.breaks import breaks

RNG = np.random.default_rng(5)
T = np.arange(200.0)


def fallen(height: float) -> np.ndarray:
    """A loss that is back `height` higher at record 120 and decays again."""
    again = np.where(T >= 120, height * np.exp(-(T - 120) / 20), 0.0)
    return np.asarray(1.2 + 2.8 * np.exp(-T / 40) + again + RNG.normal(0, 0.03, 200))


def test_a_loss_that_falls_back() -> None:
    (found,) = breaks(fallen(1.1))
    assert (found.start, found.end, found.up, found.stays) == (120, 120, True, False)
    assert found.before == pytest.approx(1.35, abs=0.05)


def test_another_level_from_here_on() -> None:
    speed = np.where(T < 130, 32_000.0, 15_600.0) * (1 + RNG.normal(0, 0.01, 200))
    (found,) = breaks(speed)
    assert (found.start, found.up, found.stays) == (130, False, True)


def test_a_setting_that_changes_within_a_few_records() -> None:
    rate = np.interp(T, [0, 119, 124, 199], [3e-4, 3e-4, 1.2e-2, 1.2e-2])
    (found,) = breaks(rate)
    assert (found.start, found.end, found.before, found.stays) == (120, 124, 3e-4, True)


def test_what_ends_in_values_that_are_not_finite() -> None:
    norm = np.concatenate([1 + RNG.normal(0, 0.1, 100), [4.0, 16.0, 80.0]])
    assert breaks(norm[:102]) == ()
    assert [b.start for b in breaks(norm, cut=True)] == [100]


@pytest.mark.parametrize("y", [
    0.5 * (1 + np.cos(np.pi * T / 200)), 0.5 * (1 + np.cos(np.pi * (T % 40) / 40)), np.minimum(T / 20, 1.0),
    3 + np.exp(-(T % 20) / 8) + RNG.normal(0, 0.05, 200), RNG.standard_t(2, 200), np.cumsum(RNG.normal(0, 1, 200)),
    np.full(200, 2.0), np.repeat([65536.0, 32768.0, 65536.0, 32768.0], 50),
    np.where(T == 90, 9.0, 1.0) + RNG.normal(0, 0.1, 200), 8 / np.sqrt(1 + T) + RNG.normal(0, 0.01, 200)],
    ids=["cosine", "restarts", "warm-up", "teeth", "heavy tails", "walk", "constant", "levels in turn", "spike",
         "decay"])
def test_what_moves_by_nature(y: np.ndarray) -> None:
    assert breaks(y) == ()


def test_too_few_and_extreme_values() -> None:
    assert breaks(np.arange(5.0)) == ()
    assert breaks(np.array([1e150, -1e150] * 20)) == ()
