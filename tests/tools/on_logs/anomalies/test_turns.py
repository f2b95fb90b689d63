"""Places where a series leaves its level and scatters more from there on."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.on_logs.anomalies.anomaly import Kind
from traindx_tools.on_logs.anomalies.breaks import breaks
from traindx_tools.on_logs.anomalies.detect import anomalies_of
from traindx_tools.on_logs.anomalies.turns import turns
from traindx_tools.on_logs.readers.recorder import Key, Recorder
from traindx_tools.on_logs.run import Series

RNG = np.random.default_rng(11)
T = np.arange(400.0)


def noisy(at: int, height: float, scatter: float, count: int = 400) -> np.ndarray:
    """A loss that falls quietly, jumps and is noisy from there on."""
    quiet = 2 / (1 + np.arange(count) / 100) + RNG.normal(0, 0.02, count)
    return np.asarray(quiet + np.where(np.arange(count) >= at, height + RNG.normal(0, scatter, count), 0.0))


@pytest.mark.parametrize(("at", "height", "scatter"), [(200, 3, 0.8), (40, 2, 0.3), (380, 4, 1.0), (150, -1.5, 0.2)])
def test_a_jump_into_noise(at: int, height: float, scatter: float) -> None:
    y = noisy(at, height, scatter)
    (found,) = turns(y)
    assert abs(found.start - at) <= 1
    assert found.up == (height > 0)


def test_breaks_alone_do_not_see_it() -> None:
    assert not breaks(noisy(200, 3, 0.8))


def test_a_climb_of_two_records() -> None:
    y = noisy(200, 3, 0.8)
    y[200] = 1.6
    (found,) = turns(y)
    assert found.start in (200, 201)


@pytest.mark.parametrize("y", [
    RNG.normal(0, 1, 400), RNG.standard_cauchy(400), RNG.normal(0, 1, 400).cumsum(), np.full(400, 2.0),
    RNG.normal(0, 1, 400) * np.where(T < 200, 0.05, 2.0), 0.5 * (1 + np.cos(np.pi * T / 400)),
    np.where(T < 100, 2.3, 2.3 / (1 + np.maximum(T - 100, 0) / 40)) + RNG.normal(0, 0.02, 400),
    3 + np.exp(-(T % 20) / 8) + RNG.normal(0, 0.05, 400), np.maximum(0, RNG.normal(0, 1, 400)) * T,
    np.where((T > 200) & (T < 206), 9.0, 1.0) + RNG.normal(0, 0.1, 400),
    np.where(T < 200, 1.0, 1.1) + RNG.normal(0, 0.03, 400), np.linspace(0, 1, 30), np.array([1e150, -1e150] * 100)],
    ids=["white", "heavy tails", "walk", "constant", "noise alone", "cosine", "plateau", "teeth", "rewards",
         "excursion", "small", "short", "extreme"])
def test_what_is_none(y: np.ndarray) -> None:
    assert list(turns(y)) == []


def _series(y: np.ndarray) -> Series:
    recorder = Recorder("train.log")
    for i, value in enumerate(y.tolist()):
        recorder.add(i + 1, [(Key("loss", "train"), value)], step=float(i))
    return recorder.series()[0]


def test_it_is_listed_as_one_step() -> None:
    found = [a for a in anomalies_of(_series(noisy(200, 3, 0.8))) if a.kind is Kind.STEP]
    assert [(abs(a.start - 200) <= 1, a.up) for a in found] == [(True, True)]
