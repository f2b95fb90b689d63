"""The quick way to decide which records of a long table stay keeps the same ones as the plain way, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import thinned_plainly as plainly
from numpy.typing import NDArray

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import delimited, recorder
from traindx_tools.on_logs.readers.recorder import keeping
from traindx_tools.on_logs.run import Run

ABSENT = -7.0
ROWS, MOST, PIECE = 8_000, 6_000, 1 << 11
Columns = dict[str, NDArray[np.float64]]


def _random(rng: np.random.Generator) -> Columns:
    n = np.arange(ROWS, dtype=float)
    held = np.where(n % 50 == 0, 1 + rng.random(ROWS), ABSENT)
    return {"step": n, "epoch": n // 300, "loss": 3 / (1 + n / 300) + 0.1 * rng.random(ROWS),
            "grad_norm": np.exp(rng.standard_normal(ROWS)), "lr": np.where(n < ROWS / 2, 3e-4, 3e-5), "val_loss": held}


def _spiky(rng: np.random.Generator) -> Columns:
    told = _random(rng)
    told["loss"][rng.integers(0, ROWS, 20)] *= 40
    told["grad_norm"][rng.integers(0, ROWS, 700)] *= 1e6
    return told


def _not_finite(rng: np.random.Generator) -> Columns:
    told = _random(rng)
    told["loss"][1_600:1_750] = np.inf
    told["loss"][3_300] = -np.inf
    told["grad_norm"][ROWS // 2:] = np.nan
    told["lr"][::7] = np.nan
    return told


def _shuffled(rng: np.random.Generator) -> Columns:
    told = _random(rng)
    told["step"] = rng.permutation(told["step"])
    return told


def _restarted(rng: np.random.Generator) -> Columns:
    told = _random(rng)
    told["step"][3_000:] -= 700
    told["time"] = 1.7e9 + told["step"] / 4
    return told


def _several_runs(rng: np.random.Generator) -> Columns:
    told = _random(rng)
    told["step"] = told["step"] % (ROWS / 5)
    told["accuracy"] = np.where(told["step"] % 3 == 1, rng.random(ROWS), ABSENT)
    told["f1"] = np.where(told["step"] % 4 == 1, rng.random(ROWS), ABSENT)
    return told


def _constant(rng: np.random.Generator) -> Columns:
    n = np.arange(ROWS, dtype=float)
    return {"step": n, "loss": np.full(ROWS, 0.5), "mfu": np.full(ROWS, np.inf), "lr": np.repeat(rng.random(8), 1_000)}


def _text(columns: Columns) -> bytes:
    rows = [",".join(map(_cell, row)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    return "\n".join([",".join(columns), *rows]).encode()


def _cell(value: float) -> str:
    return "" if value == ABSENT else f"{value:.0f}" if value.is_integer() else repr(value)


def _read(data: bytes) -> Run:
    with keeping(MOST):
        return delimited.read(Source("metrics.csv", data=data))


@pytest.mark.parametrize("made", [_random, _spiky, _not_finite, _shuffled, _restarted, _several_runs, _constant])
def test_the_same_records_stay(made: Callable[[np.random.Generator], Columns], monkeypatch: pytest.MonkeyPatch) -> None:
    data = _text(made(np.random.default_rng(7)))
    monkeypatch.setattr(recorder, "PIECE", PIECE)
    quick = _read(data)
    monkeypatch.setattr(recorder, "kept_exactly", plainly.kept_exactly)
    monkeypatch.setattr(recorder, "graded", plainly.graded)
    plain = _read(data)
    assert any(s.thinned for s in quick.series)
    assert [s.name for s in quick.series] == [s.name for s in plain.series]
    for one, other in zip(quick.series, plain.series, strict=True):
        for name in ("line", "step", "epoch", "time", "values"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), f"{one.name}: {name}")
