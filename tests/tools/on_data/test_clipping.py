"""Measurements that stop at a level in one stretch of rows, and what looks like it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.clipping import clipped, peaks_of_numbers, peaks_of_signals
from traindx_tools.on_data.rules import d132_clipped
from traindx_tools.on_data.significance import LEVEL


def found(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.rule == "D132" and f.severity is not Severity.INFO]


def waves(rows: int, rng: np.random.Generator, samples: int = 200) -> Any:
    time = np.arange(samples)
    size, rate = rng.lognormal(0, 0.3, (rows, 1)), rng.uniform(0.05, 0.2, (rows, 1))
    return size * np.sin(rate * time + rng.uniform(0, 6, (rows, 1))) + 0.02 * rng.normal(size=(rows, samples))


@pytest.mark.parametrize("axis", [0, 1])
def test_signals_that_are_clipped_in_a_stretch(axis: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.stack([waves(400, rng), waves(400, rng)], axis=1)
    x[150:230, 1] = np.clip(x[150:230, 1], -0.8, 0.8)
    np.savez(tmp_path / "train.npz", x=(np.swapaxes(x, 1, 2) if axis else x).astype(np.float32))
    (told,) = found(tmp_path)
    assert told.statement.startswith("channel 1 of x in row 15")
    assert abs(told.measured["level"]) == pytest.approx(0.8)
    assert np.abs(np.subtract(told.measured["rows"], (150, 229))).max() <= 8


def test_a_column_and_a_shard_that_are_clipped(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for i in range(4):
        x = rng.normal(size=(500, 5))
        if i == 2:
            x[:, 3] = np.maximum(x[:, 3], -1.1)
        np.savez(tmp_path / f"part_{i}.npz", x=x)
    (told,) = found(tmp_path)
    assert told.measured["shard"] == "part_2.npz"
    assert told.measured["level"] == -1.1


def test_of_more_values_some_rows_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = waves(600, np.random.default_rng(5))
    x[300:500] = np.clip(x[300:500], -0.7, 0.7)
    np.save(tmp_path / "a.npy", x[:200])
    np.save(tmp_path / "b.npy", x[200:])
    monkeypatch.setattr(d132_clipped, "MOST_VALUES", x.size // 3)
    (told,) = found(tmp_path)
    assert told.measured["shard"] == "b.npy"
    assert np.abs(np.subtract(told.measured["rows"], (100, 299))).max() <= 12


def _quiet(rng: np.random.Generator) -> Any:
    x = rng.normal(size=1200)
    x[500:700] *= 0.2
    return x


def _rounded_and_slow(rng: np.random.Generator) -> Any:
    return np.round(np.cumsum(rng.normal(size=1200)) * 0.3)


def _bounded(rng: np.random.Generator) -> Any:
    return np.clip(rng.normal(size=1200), -1, 1)


def _scaled_by_source(rng: np.random.Generator) -> Any:
    rain = np.maximum(0, rng.normal(size=(4, 300)))
    return ((rain - rain.mean(axis=1, keepdims=True)) / rng.uniform(0.5, 2, (4, 1))).reshape(-1)


def _marks(rng: np.random.Generator) -> Any:
    x = rng.normal(size=1200)
    x[1100:] *= 50
    x[500:700:4] = 9.5
    return x


def _of_people(rng: np.random.Generator) -> Any:
    return np.repeat(rng.normal(size=60), 20)


@pytest.mark.parametrize("made", [_quiet, _rounded_and_slow, _bounded, _scaled_by_source, _marks, _of_people])
def test_parts_that_are_quiet_rounded_bounded_or_marked(made: Callable[..., Any], tmp_path: Path) -> None:
    for seed in range(3):
        np.savez(tmp_path / f"train{seed}.npz", a=made(np.random.default_rng(seed)))
        assert not found(tmp_path)


def test_sound_of_sixteen_bits(tmp_path: Path) -> None:
    x = waves(300, np.random.default_rng(2)) * 20_000
    np.save(tmp_path / "sound.npy", np.clip(x, -32768, 32767).astype(np.int16))
    assert not found(tmp_path)  # the end of the type
    quieter = (x / 4).astype(np.int16)
    quieter[100:160] = np.clip(quieter[100:160], -3000, 3000)
    np.save(tmp_path / "sound.npy", quieter)
    assert len(found(tmp_path)) == 1


def test_signals_that_hold_no_numbers_and_a_file_that_is_cut(tmp_path: Path) -> None:
    x = waves(300, np.random.default_rng(4))
    x[100:160] = np.clip(x[100:160], -0.8, 0.8)
    x[120], x[200:] = np.nan, np.nan
    np.save(tmp_path / "a.npy", x)
    assert len(found(tmp_path)) == 1
    np.save(tmp_path / "a.npy", np.full((40, 64), np.nan))
    (tmp_path / "b.npy").write_bytes(b"\x93NUMPY\x01\x00")
    assert not found(tmp_path)


def test_false_alarms_are_rare() -> None:
    rng, alarms = np.random.default_rng(3), 0
    for i in range(1500):
        x = np.cumsum(rng.normal(size=300)) if i % 3 else rng.standard_t(3, 300)
        x = np.round(x, i % 4)
        seen = clipped(peaks_of_numbers(x), 1)
        alarms += seen is not None and seen.log_chance < math.log(LEVEL)
    for _ in range(150):
        seen = clipped(peaks_of_signals(np.round(waves(60, rng, 64), 1)), 1)
        alarms += seen is not None and seen.log_chance < math.log(LEVEL)
    assert alarms <= 5  # at a level of 1e-3
