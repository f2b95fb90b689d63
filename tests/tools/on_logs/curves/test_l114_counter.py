"""Counters that go back; those that start over, are resumed or are no counters are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, note, run, series

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.run import Floats, Run

COUNT = np.arange(300) * 32.0
RNG = np.random.default_rng(3)
BACK = COUNT - 5000.0 * (np.arange(300) >= 200)


def back(r: Run) -> list[Finding]:
    return findings(r, "l114_counter_goes_back")


@pytest.mark.parametrize("name", ["consumed_tokens", "count/samples", "other/z1", "global_step"])
def test_a_counter_that_goes_back(name: str) -> None:
    (found,) = back(run(series(name, BACK)))
    assert (found.where.step, found.where.end_step, found.severity) == (200, 201, Severity.LOW)
    assert found.measured["lost"] == 5000 - 32


def test_uneven_tokens_under_a_known_name() -> None:
    tokens = np.cumsum(RNG.integers(900, 1100, 300)).astype(float)
    tokens[150:] -= 50_000
    assert len(back(run(series("consumed_tokens", tokens)))) == 1
    assert back(run(series("other/buffer", tokens))) == []


@pytest.mark.parametrize("values", [
    COUNT, np.arange(300) % 100 * 1.0, np.r_[COUNT[:200], COUNT[:100]], np.r_[COUNT[:200], 0, 0, COUNT[:98]],
    np.minimum.accumulate(COUNT[::-1]), RNG.integers(0, 9, 300), np.r_[COUNT[:298], 0.0, 0.0], BACK + 0.5,
    np.r_[COUNT[:150], np.full(150, 3000.0)], np.cumsum(RNG.choice([-1.0, 1.0], 300)) + 500,
    np.repeat([65536.0, 32768.0, 65536.0], 100),
], ids=["counts", "of its epoch", "starts over", "patience", "falls", "levels", "at the end", "no whole numbers",
        "stands then", "walk", "loss scale"])
def test_what_does_not_go_back(values: Floats) -> None:
    assert back(run(series("count/tokens", values), series("other/q", values))) == []


def test_a_resume_explains_it() -> None:
    assert back(run(series("consumed_tokens", BACK), notes=(note("resume", "Resuming from step 40", 199),))) == []
    stepped = np.r_[np.arange(200), np.arange(44, 144)].astype(float)
    assert back(run(series("consumed_tokens", BACK, step=stepped.tolist()))) == []


@pytest.mark.parametrize("values", [[], [1.0], [np.nan] * 50, [np.inf] * 50, [-1.0] * 50, [1e300, 0.0] * 30])
def test_hostile_values(values: list[float]) -> None:
    assert back(run(series("consumed_tokens", values))) == []
