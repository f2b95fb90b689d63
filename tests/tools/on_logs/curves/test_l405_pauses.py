"""Pauses between records: those without a pattern are seen, evaluations and checkpoints are a remark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numerics_builder import findings, note, run, series

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.curves.pauses import pauses_of
from traindx_tools.on_logs.events.anomalous import anomaly_sets
from traindx_tools.on_logs.run import Floats, Run

N = 1500
RNG = np.random.default_rng(2)
SOME = np.sort(RNG.choice(np.arange(20, N - 1), 20, replace=False))


def clock(at: object, seconds: float, each: Floats | float = 2.0) -> Floats:
    passed = np.zeros(N) + each
    passed[at] += seconds  # type: ignore[index]
    return np.floor(np.cumsum(passed))


def of(time: Floats, **options: object) -> Run:
    return run(series("loss", 2 + np.exp(-np.arange(N) / 300), time=time), **options)


def paused(r: Run) -> list[Finding]:
    return findings(r, "l405_pauses")


@pytest.mark.parametrize("each", [2.0, 0.3, RNG.lognormal(0.5, 0.2, N)], ids=["even", "below a second", "scattered"])
def test_pauses_without_a_pattern(each: Floats | float) -> None:
    (found,) = paused(of(clock(SOME, 300.0, each)))
    assert (found.severity, found.measured["kind"], found.measured["pauses"]) == (Severity.MEDIUM, "irregular", 20)
    assert found.measured["seconds"] == pytest.approx(300, abs=5)
    assert found.where.step == SOME[0] + 1


def test_short_ones_are_minor() -> None:
    (found,) = paused(of(clock(SOME, 30.0)))
    assert found.severity is Severity.LOW


def test_they_are_asked_what_goes_along() -> None:
    sets = [a for a in anomaly_sets(of(clock(SOME, 300.0))) if a.what.startswith("pauses")]
    assert sets[0].at.tolist() == SOME.tolist()


def test_even_ones_are_a_remark() -> None:
    for at in (np.arange(100, N, 100), np.arange(37, N, 250), np.r_[np.arange(100, 700, 100), np.arange(900, N, 100)]):
        (found,) = paused(of(clock(at, 300.0)))
        assert (found.severity, found.measured["kind"]) == (Severity.INFO, "regular")


def test_even_in_time_though_not_in_records() -> None:
    each = np.where(np.arange(N) < 700, 1.0, 3.0) + RNG.uniform(0, 0.4, N)
    at = np.searchsorted(np.cumsum(each), np.arange(300, 3000, 300))
    (found,) = paused(of(clock(at, 90.0, each)))
    assert found.severity is Severity.INFO


def test_beside_a_line_of_their_own() -> None:
    r = of(clock(SOME, 300.0))
    saved = replace(r, notes=tuple(note("checkpoint", "saved the best", int(i + 1)) for i in SOME))
    lines = np.array([int(i + 1) for i in SOME])
    scored = replace(series("accuracy", np.linspace(0, 1, len(SOME)), group="validation"), line=lines)
    for healthy in (saved, replace(r, series=(*r.series, scored))):
        (found,) = paused(healthy)
        assert (found.severity, found.measured["own"]) == (Severity.INFO, len(SOME))


def test_a_pre_emption_is_none() -> None:
    r = of(clock(SOME, 300.0))
    assert paused(replace(r, notes=tuple(note("resume", "resumed", int(i + 1)) for i in SOME))) == []


@pytest.mark.parametrize("time", [
    clock(SOME[:2], 300.0), clock([], 0.0), np.floor(np.cumsum(RNG.lognormal(0, 1, N))),
    np.cumsum(RNG.pareto(1.0, N)), np.floor(np.cumsum(RNG.exponential(2, N))), clock(np.arange(0, N, 5), 60.0),
    clock(SOME, 5.0), np.zeros(N),
], ids=["two", "none", "lognormal", "Pareto", "exponential", "bursts", "seconds", "no clock"])
def test_what_is_no_pause(time: Floats) -> None:
    assert paused(of(time)) == []


@pytest.mark.parametrize("time", [np.full(N, np.nan), np.full(N, np.inf), -np.arange(N) * 1.0, RNG.normal(0, 1e300, N)])
def test_hostile_clocks(time: Floats) -> None:
    assert paused(of(time)) == []
    assert anomaly_sets(of(time)) == ()


def test_few_records_and_thinned_ones() -> None:
    r = of(clock(SOME, 300.0))
    assert pauses_of(r, replace(r.series[0], thinned=True)) is None
    assert paused(run(series("loss", [2.0, 1.0], time=[0.0, 900.0]))) == []
