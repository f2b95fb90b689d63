"""Anomalies of any series: each kind is seen, and noise of any form and length shows none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from traindx_tools.on_logs.anomalies import Kind, anomalies_of
from traindx_tools.on_logs.run import Floats, Series

SEEDS = 25


def series(values: Floats, original: str = "q", name: str = "other/q") -> Series:
    steps = np.arange(len(values), dtype=np.float64)
    unknown = np.full(len(values), np.nan)
    return Series(name, original, "train", "log.txt", np.asarray(values, dtype=np.float64), steps, unknown, unknown,
                  np.arange(1, len(values) + 1))


def autoregressive(rng: np.random.Generator, n: int, share: float) -> Floats:
    noise, out = rng.standard_normal(n), np.zeros(n)
    for i in range(1, n):
        out[i] = share * out[i - 1] + noise[i]
    return out


NOISES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "white": lambda rng, n: rng.standard_normal(n),
    "autoregressive": lambda rng, n: autoregressive(rng, n, 0.9),
    "random walk": lambda rng, n: np.cumsum(rng.standard_normal(n)),
    "student t3": lambda rng, n: rng.standard_t(3, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "falling loss": lambda rng, n: 3 * np.exp(-5 * np.arange(n) / n) + 1 + 0.1 * rng.standard_normal(n),
}


def alarms(noise: str, records: int, seeds: int) -> Counter[str]:
    make = NOISES[noise]
    return Counter(kind.value for seed in range(seeds) for kind in {
        a.kind for a in anomalies_of(series(make(np.random.default_rng(seed + 50), records)))})


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_no_anomalies(noise: str) -> None:
    assert alarms(noise, 800, SEEDS) == Counter()


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_the_false_alarms_do_not_grow_with_the_length(noise: str) -> None:
    """The bound is 1 in 1,000 for a kind; of 40 series of 20,000 records at most one may show one at all."""
    assert sum(alarms(noise, 20_000, 40).values()) <= 1


def kinds(values: Floats) -> dict[Kind, list[int]]:
    found: dict[Kind, list[int]] = {}
    for a in anomalies_of(series(values)):
        found.setdefault(a.kind, []).append(a.start)
    return found


def noise(n: int = 2000) -> Floats:
    return np.random.default_rng(3).standard_normal(n)


def test_spikes_are_seen_where_they_are_and_hide_each_other_not() -> None:
    y = noise()
    at = np.arange(150, 1900, 90)
    y[at] += 9.0
    found = kinds(y)
    assert found.keys() == {Kind.SPIKE, Kind.OSCILLATION}  # they stand at even distances
    assert found[Kind.SPIKE] == at.tolist()


def test_a_spike_downwards_says_so() -> None:
    y = noise()
    y[1000:1002] -= 12.0
    (one,) = anomalies_of(series(y))
    assert (one.kind, one.up, one.start, one.end) == (Kind.SPIKE, False, 1000, 1001)


def test_a_step_is_told_once_where_it_is() -> None:
    y = noise()
    y[1200:] += 8.0
    found = [a for a in anomalies_of(series(y)) if a.kind is Kind.STEP]
    assert len(found) == 1
    assert abs(found[0].start - 1200) <= 3
    assert found[0].up


def test_a_drift_is_no_random_walk() -> None:
    assert Kind.DRIFT in kinds(noise() + np.linspace(0, 400, 2000))
    assert Kind.DRIFT not in kinds(np.cumsum(noise()))


def test_a_period_is_found_in_noise() -> None:
    y = noise() + 1.5 * np.sin(2 * np.pi * np.arange(2000) / 40)
    (one,) = [a for a in anomalies_of(series(y)) if a.kind is Kind.OSCILLATION]
    assert one.size == pytest.approx(40, rel=0.05)


@pytest.mark.parametrize(("records", "change"), [(1500, 6.0), (1500, -10.0), (6000, 10.0)])
def test_a_drift_under_noise(records: int, change: float) -> None:
    (one,) = [a for a in anomalies_of(series(noise(records) + np.linspace(0, change, records))) if a.kind is Kind.DRIFT]
    assert (one.up, one.size) == (change > 0, pytest.approx(abs(change), rel=0.1))


def test_a_walk_under_noise_and_a_curve_are_no_drift() -> None:
    rng = np.random.default_rng(8)
    walks = [np.cumsum(rng.normal(0, 0.05, 800)) + rng.standard_normal(800) for _ in range(60)]
    assert not any(Kind.DRIFT in kinds(w) for w in walks)
    assert Kind.DRIFT not in kinds(noise() + 8 * np.exp(-np.arange(2000) / 300))
    assert Kind.DRIFT not in kinds(noise() + np.linspace(0, 2, 2000))


@pytest.mark.parametrize("period", [37.0, 36.5, 12.345, 111.0])
def test_a_period_is_known_between_two_frequencies(period: float) -> None:
    y = 0.5 * noise(3000) + np.sin(2 * np.pi * np.arange(3000) / period)
    (one,) = [a for a in anomalies_of(series(y)) if a.kind is Kind.OSCILLATION]
    assert one.size == pytest.approx(period, rel=1e-3)


@pytest.mark.parametrize(("period", "height"), [(50, 6.0), (37, -6.0), (100, 7.0)])
def test_spikes_at_even_distances(period: int, height: float) -> None:
    y = noise(1500)
    y[::period] += height
    (one,) = [a for a in anomalies_of(series(y)) if a.kind is Kind.OSCILLATION]
    assert one.size == period


def test_spikes_at_uneven_distances_have_no_period() -> None:
    y = noise(1500)
    y[np.random.default_rng(9).choice(1500, 30, replace=False)] += 6
    assert Kind.OSCILLATION not in kinds(y)


def test_values_that_stand_still_and_values_that_stood_before() -> None:
    y = noise()
    y[500:520] = y[500]
    y[1500:1540] = y[100:140]
    found = {a.kind: a for a in anomalies_of(series(y))}
    assert (found[Kind.FLAT].start, found[Kind.FLAT].end) == (500, 519)
    assert (found[Kind.COPIED].start, found[Kind.COPIED].of) == (1500, 100)


def test_levels_of_few_values_neither_stand_still_nor_repeat() -> None:
    """The healthy twin: a loss scale is the same for a thousand records."""
    assert kinds(np.repeat([65536.0, 32768.0, 65536.0, 32768.0], 500)) == {}


def test_values_that_cannot_be() -> None:
    y = np.full(100, 0.6) + 0.01 * noise(100)
    y[40] = 24.0
    y[60] = np.nan
    s = series(y, "iou", "iou")
    wrong = [a for a in anomalies_of(s) if a.kind is Kind.IMPOSSIBLE]
    assert [a.start for a in wrong if not np.isfinite(a.size)] == [60]


@pytest.mark.parametrize("values", [[], [1.0], [np.nan] * 100, [np.inf] * 100, [0.0] * 500, [1e308, -1e308] * 200])
def test_hostile_values_are_no_error(values: list[float]) -> None:
    assert all(a.start <= a.end < len(values) for a in anomalies_of(series(np.array(values))))
