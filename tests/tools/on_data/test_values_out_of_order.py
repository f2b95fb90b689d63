"""Sums that wrapped in one file where rows are in no order (D197), and a lag within groups that take turns (D194)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d194_relation_of_part as d194
from traindx_tools.on_data.rules import d197_wrapped_samples as d197
from traindx_tools.on_data.wrapped_values import wrapped_values

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]


def showers(seed: int) -> Array:
    """Sums of 8 layers, int32, of events with energies of their own: the hottest come to 100,000."""
    rng = np.random.default_rng(seed)
    energy = np.exp(rng.uniform(np.log(5), np.log(150), 800))
    depth = np.exp(-0.5 * ((np.arange(8) - 2 - np.log(energy)[:, None] / 3) / 1.8) ** 2)
    return np.round(650 * energy[:, None] * depth * rng.uniform(0.8, 1.2, (800, 8)) + rng.normal(0, 14, (800, 8))
                    ).astype(np.int32)


def in_type(x: Array) -> Array:
    return x.astype(np.int16).astype(np.int32)


def runs(folder: Path, odd: Callable[[Array], Array]) -> None:
    for i in range(5):
        layers = showers(i)
        np.savez(folder / f"run_{i}.npz", adc=odd(layers) if i == 3 else layers, energy=np.arange(800) % 7 * 1.5)


def test_sums_that_wrapped_in_one_run(tmp_path: Path, seen_by: Seen) -> None:
    runs(tmp_path, in_type)
    (found,) = seen_by(d197, tmp_path)
    assert (found.measured["kind"], found.measured["shard"], found.measured["range"]) == ("values", "run_3.npz", 2**16)
    assert "type of 16 bits" in found.statement
    assert found.severity is Severity.HIGH


@pytest.mark.parametrize("odd", [
    lambda x: x,
    lambda x: np.clip(x, -(2**15), 2**15 - 1),
    lambda x: x // 4,
    lambda x: np.where(np.arange(len(x))[:, None] % 2 == 0, -x, x) // 4,
], ids=["healthy", "clipped", "smaller", "of both signs"])
def test_what_looks_like_it(odd: Callable[[Array], Array], tmp_path: Path, seen_by: Seen) -> None:
    runs(tmp_path, odd)
    assert not seen_by(d197, tmp_path)


def test_of_noise_next_to_nothing_is_told() -> None:
    """Parts whose values fill sixteen bits in their own ways, beside others that pass them."""
    told = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = rng.normal(0, 60_000, (600, 2)).round()
        part = np.repeat([0, 1, 2], 200)
        values[part == 1] = rng.uniform(-32_768, 32_767, (200, 2)).round()
        told += bool(list(wrapped_values(values, part, 3, 10.0)))
    assert not told


def test_a_file_that_is_cut_and_one_without_rows(tmp_path: Path, seen_by: Seen) -> None:
    runs(tmp_path, in_type)
    (tmp_path / "run_4.npz").write_bytes((tmp_path / "run_4.npz").read_bytes()[:300])
    np.savez(tmp_path / "run_5.npz", adc=np.zeros((0, 8), np.int32), energy=np.zeros(0))
    assert all(f.measured["shard"] == "run_3.npz" for f in seen_by(d197, tmp_path))


def farm(folder: Path, by: int, turbines: int = 6, grouped: bool = False) -> None:
    """Four quarters of ten-minute rows of turbines that take turns; power follows the wind, in one quarter too late."""
    for quarter in range(4):
        rng = np.random.default_rng(quarter)
        steps = 500
        slow = np.convolve(rng.normal(size=steps + 11), np.ones(12) / 3.5, "valid")
        wind = np.clip(8 + 2 * slow[:, None] + rng.normal(0, 1, (steps, turbines)), 0, None)
        cold = 10 + rng.normal(size=(steps, turbines)).cumsum(axis=0) * 0.1
        power = np.clip(wind, 3, 12) ** 2 * 10 * (1 - 0.004 * cold) + rng.normal(0, 8, wind.shape)
        power = np.roll(power, by, axis=0) if quarter == 2 else power
        who = np.tile(np.array([f"T{k}" for k in range(turbines)]), (steps, 1))
        order = "F" if grouped else "C"
        np.savez(folder / f"q{quarter}.npz", turbine=who.ravel(order), wind=wind.ravel(order), cold=cold.ravel(order),
                 power=power.ravel(order))


@pytest.mark.parametrize("by", [6, -5])
def test_a_lag_within_groups_that_take_turns(by: int, tmp_path: Path, seen_by: Seen) -> None:
    farm(tmp_path, by)
    (found,) = seen_by(d194, tmp_path)
    assert (found.measured["kind"], found.measured["shard"]) == ("rows", "q2.npz")
    assert (found.measured["field"], found.measured["moved"]) in {("power", by), ("wind", -by)}
    assert f"shifted by {abs(by)} rows of each turbine" in found.statement


@pytest.mark.parametrize("grouped", [True, False])
def test_groups_without_a_lag(grouped: bool, tmp_path: Path, seen_by: Seen) -> None:
    farm(tmp_path, 0, grouped=grouped)
    assert not seen_by(d194, tmp_path)
