"""D153 of transitions: a boiler, its valve, its state after a step, and what the step cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d153_shifted_field as d153

Seen = Callable[[ModuleType, Path], list[Finding]]
Edit = Callable[[dict[str, Any], np.random.Generator], None]
SHIFTS, STEPS = 120, 60


def write(folder: Path, edit: Edit) -> None:
    rng = np.random.default_rng(4)
    rows: dict[str, list[Any]] = {n: [] for n in ("state", "valve", "state_after", "cost", "shift")}
    for shift in range(SHIFTS):
        state = rng.normal(0, 1, 3)
        for _ in range(STEPS):
            valve = float(np.clip(-0.5 * state[0] + rng.normal(0, 0.5), -1, 1))
            after = 0.96 * state + 0.1 * np.array([state[1], valve, state[0] * valve]) + rng.normal(0, 0.02, 3)
            cost = float(after[0] ** 2 + 0.3 * valve**2 + 0.1 * after[2] - 1.5 * (abs(after[0]) < 0.2))
            for name, value in zip(rows, (state, valve, after, cost, shift), strict=True):
                rows[name].append(value)
            state = after
    made = {n: np.asarray(v, np.int32 if n == "shift" else np.float32) for n, v in rows.items()}
    edit(made, rng)
    np.savez(folder / "boiler.npz", **made)


def late(t: dict[str, Any], first: int, last: int, by: int = 1) -> None:
    for k in range(first, last):
        own = t["cost"][k * STEPS: (k + 1) * STEPS]
        own[:] = np.roll(own, by)
        own[slice(0, by) if by > 0 else slice(by, None)] = 0


@pytest.mark.parametrize(("first", "last", "by", "told"), [
    (70, 120, 1, "late"), (30, 60, 1, "late"), (80, 110, -1, "early")])
def test_costs_that_are_those_of_the_step_before(first: int, last: int, by: int, told: str, tmp_path: Path,
                                                 seen_by: Seen) -> None:
    write(tmp_path, lambda t, rng: late(t, first, last, by))
    (found,) = seen_by(d153, tmp_path)
    rows = found.measured["rows"]
    assert found.measured["field"] == "cost"
    assert told in found.statement
    assert isinstance(rows, tuple)
    assert abs(rows[0] - first * STEPS) < 60
    assert abs(rows[1] - last * STEPS) < 60


def everywhere(t: dict[str, Any], rng: np.random.Generator) -> None:
    late(t, 0, SHIFTS)


def noisy(t: dict[str, Any], rng: np.random.Generator) -> None:
    t["cost"][4200:] += rng.normal(0, 0.6, len(t["cost"]) - 4200)


def at_the_end(t: dict[str, Any], rng: np.random.Generator) -> None:
    t["cost"][:] = np.where(np.arange(len(t["cost"])) % STEPS == STEPS - 1, t["cost"], 0)


def of_another_boiler(t: dict[str, Any], rng: np.random.Generator) -> None:
    t["cost"][4200:] = 2 * t["state_after"][4200:, 1] ** 2 + t["valve"][4200:]


def summed(t: dict[str, Any], rng: np.random.Generator) -> None:
    t["cost"][:] = np.cumsum(t["cost"])


@pytest.mark.parametrize("edit", [lambda t, rng: None, everywhere, noisy, at_the_end, of_another_boiler, summed])
def test_lags_by_design_noise_and_other_costs_are_quiet(edit: Edit, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, edit)
    assert seen_by(d153, tmp_path) == []


def test_numbers_that_are_none_and_few_rows_are_read(tmp_path: Path, seen_by: Seen) -> None:
    def broken(t: dict[str, Any], rng: np.random.Generator) -> None:
        late(t, 70, 120)
        t["state"][5] = np.nan
        for name in t:
            t[name] = t[name][:50]

    write(tmp_path, broken)
    assert seen_by(d153, tmp_path) == []
