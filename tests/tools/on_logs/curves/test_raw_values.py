"""A number beside a named step is the one that the log holds there; a level says what it is the median of."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.on_logs.run import Run

RNG = np.random.default_rng(0)
STEPS = [10.0 * i for i in range(120)]
_AT = re.compile(r"(?<![\w.])(\d[\d.e+-]*) at (?:the end \()?(?:step) (\d+)")


def of(values: np.ndarray, held: np.ndarray | None = None) -> Run:
    more = [] if held is None else [series("loss", list(held), group="validation", every=10)]
    return run(series("loss", list(values), every=10), *more)


x = np.arange(120.0)
FALLS = 2 * np.exp(-x / 20) + 0.3 + RNG.normal(0, 0.03, 120)
RUNS = {
    "l106_divergence": of(FALLS + 1.2 * (x > 80)),
    "l107_spike": of(FALLS + 3.0 * (x == 60)),
    "l203_overfitting": of(FALLS, 1 + 0.01 * np.abs(x - 30) + RNG.normal(0, 0.02, 120)),
}


@pytest.mark.parametrize("rule", RUNS)
def test_what_is_printed_at_a_step_can_be_found_there(rule: str) -> None:
    (found,) = findings(RUNS[rule], rule)
    told = _AT.findall(found.statement)
    assert told, found.statement
    every = [pair for s in RUNS[rule].series for pair in zip(s.values, s.position, strict=True)]
    raw = {(f"{float(v):.4g}", f"{p:.0f}") for v, p in every}
    assert {(f"{float(v):.4g}", p) for v, p in told} <= raw, found.statement


def test_a_level_says_what_it_is_the_median_of() -> None:
    (found,) = findings(of(2.3026 + RNG.normal(0, 0.002, 120)), "l201_plateau")
    assert len(re.findall(r"median of steps \d+\u2013\d+", found.statement)) == 2


def test_a_level_that_is_the_value_itself_says_nothing_more() -> None:
    (found,) = findings(of(np.full(120, 2.3026)), "l201_plateau")
    assert "median" not in found.statement
