"""Series of unknown names: what they look like, and what stands out in them."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.looks import looks_like
from traindx_tools.on_logs.run import Floats

N = 1000
RNG = np.random.default_rng(6)
NOISE = RNG.normal(0, 1, N)


def told(**values: Floats) -> list[Finding]:
    return findings(run(*(series(n, v) for n, v in values.items())), "l115_unknown_names")


@pytest.mark.parametrize(("values", "words"), [
    (0.5 + 3 * np.exp(-np.arange(N) / 100) + 0.05 * np.abs(NOISE), "falls and flattens like a loss"),
    (np.arange(N) * 8.0, "counts up"), (np.linspace(0.1, 0.9, N) + 0.002 * NOISE, "between 0 and 1, rises"),
    (NOISE, "scatters around"), (np.full(N, 3.0), "is 3 throughout"), (5 - np.linspace(0, 9, N) + NOISE, "falls from"),
    (np.full(N, np.nan), "holds no number"), (np.array([1.0, 2.0]), "2 values, 1 to 2"),
])
def test_what_it_looks_like(values: Floats, words: str) -> None:
    assert looks_like(series("zug", values)).startswith(words)


def test_the_strongest_first_and_the_rest_in_one() -> None:
    spiky, stepped = NOISE.copy(), 2 + NOISE
    spiky[[200, 410, 777]] += 60
    stepped[600:] += 30
    looks, first, rest = told(blorp=spiky, zug=stepped)
    assert looks.statement.startswith("no rule knows these names: blorp scatters around")
    assert (first.measured["metric"], first.measured["anomaly"]) == ("blorp", "spike")
    assert first.where.step in (201, 411, 778)
    assert first.statement.endswith("and 2 more like it")
    assert rest.statement.startswith("also: zug: step up at step 601, from")
    assert {f.severity for f in (looks, first, rest)} == {Severity.LOW}


def test_noise_is_only_described() -> None:
    assert [f.measured["kind"] for f in told(blorp=NOISE, zug=np.cumsum(NOISE))] == ["looks"]


def test_nothing_where_a_name_is_known() -> None:
    spiky = NOISE.copy()
    spiky[300] += 60
    assert told(loss=2 + 0.1 * NOISE, zug=spiky) == []


@pytest.mark.parametrize("values", [[], [1.0], [np.nan] * 50, [np.inf, -np.inf] * 30, [1e308, -1e308] * 100])
def test_hostile_values(values: list[float]) -> None:
    assert all(f.severity in (Severity.LOW, Severity.INFO) for f in told(blorp=np.array(values)))
    assert isinstance(looks_like(series("blorp", values)), str)
