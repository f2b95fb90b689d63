"""Scores above 1: a fraction cannot be there, and what may be in per cent is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from test_l111_l312 import impossible, named

from traindx_tools.on_logs.anomalies import Kind, anomalies_of
from traindx_tools.on_logs.curves.above_one import above_one
from traindx_tools.on_logs.run import Floats

RNG = np.random.default_rng(1)
RISING = 0.4 + 0.4 * np.linspace(0, 1, 400) + RNG.normal(0, 0.02, 400)


def changed(at: object, value: float) -> Floats:
    y = RISING.copy()
    y[at] = value  # type: ignore[index]
    return y


@pytest.mark.parametrize("name", ["val/iou", "accuracy", "dice", "auc", "f1", "c_index", "recall", "precision"])
@pytest.mark.parametrize(("at", "value"), [
    (200, 24.0), ([100, 230, 300], 1.3), (slice(200, 380), 1.4), (slice(210, None), 1.4), ([30, 399], 5.0),
], ids=["once", "often", "for long", "from there on", "also at the end"])
def test_a_fraction_above_1(name: str, at: object, value: float) -> None:
    (found,) = impossible(named(name, changed(at, value)))
    assert (found.measured["high"], found.measured["value"]) == (1.0, value)
    assert "outside of 0 to 1, where its other values lie" in found.statement


def test_it_is_an_anomaly_too() -> None:
    found = [a for a in anomalies_of(named("iou", changed(200, 24.0))) if a.kind is Kind.IMPOSSIBLE]
    assert [(a.start, a.size) for a in found] == [(200, 24.0)]


def per_batch(chance: float, size: int) -> Floats:
    return 100.0 * RNG.binomial(size, chance, 2000) / size


@pytest.mark.parametrize("values", [
    100 * RISING, 0.3 * np.exp(np.arange(100) / 60), 0.2 + 5 * np.exp(-np.arange(300) / 40) + RNG.normal(0, 0.02, 300),
    per_batch(0.001, 256), per_batch(0.01, 64), per_batch(0.01, 256), per_batch(0.01, 1024), per_batch(0.005, 512),
    np.r_[np.full(40, 0.5), 60 + np.arange(30), np.full(200, 0.5)], np.r_[RISING, 100 * RISING[-80:]],
    changed([100, 200], 62.0), 0.97 + RNG.normal(0, 0.03, 400), np.r_[np.full(30, 0.6), 4.0, 12.0, 25.0, 31.0],
    np.r_[60.0, 65.0, 70.0, np.full(100, 0.5)], changed(399, 24.0), RISING + 0.0005,
], ids=["per cent", "takes off", "error falls", "1000 classes", "100 classes", "256 a batch", "1024 a batch",
        "200 classes", "learned, then lost", "per cent from there on", "per cent between", "about its chance of 1",
        "takes off at once", "collapses", "last value", "fraction"])
def test_what_may_be_in_per_cent(values: Floats) -> None:
    assert impossible(named("accuracy", values)) == []


@pytest.mark.parametrize("values", [[], [2.0], [np.nan] * 50, [np.inf] * 50, [0.5] * 20 + [np.nan, 3.0, np.inf],
                                    [1e300, 0.5] * 30])
def test_hostile_values(values: list[float]) -> None:
    assert not above_one(np.array(values)).any()
