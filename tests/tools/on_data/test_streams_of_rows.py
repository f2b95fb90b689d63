"""Episodes that are rows (lists of steps, arrays of two axes), a stretch of which has a stream that is shifted (D188).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d188_streams_apart as d188

Array = np.ndarray[Any, Any]
Streams = dict[str, Array]
Seen = Callable[[ModuleType, Path], list[Finding]]
Edit = Callable[[int, Streams], Streams]
JOINTS = 4


def _episode(rng: np.random.Generator, steps: int) -> Streams:
    """An arm that reaches for a goal; an action is what the next state adds."""
    state, states, actions = rng.normal(size=JOINTS), [], []
    goal, drift = rng.normal(size=JOINTS), np.zeros(JOINTS)
    for _ in range(steps):
        drift = 0.8 * drift + 0.1 * rng.normal(size=JOINTS)
        action = 0.1 * (goal - state) + drift
        states.append(state)
        actions.append(action)
        state = state + action + 0.002 * rng.normal(size=JOINTS)
    return {"state": np.array(states), "action": np.array(actions)}


def _ahead(by: int, rows: range) -> Edit:
    def edit(row: int, one: Streams) -> Streams:
        action = one["action"]
        moved = np.concatenate([action[by:], np.repeat(action[-1:], by, 0)])
        return {**one, "action": moved} if row in rows else one

    return edit


def _lists(folder: Path, made: list[Streams]) -> None:
    """Flat lists of many lengths with their number of steps, in three files."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part in range(3):
        some = made[part * 16:(part + 1) * 16]
        parquet.write_table(pyarrow.table({
            "episode": [f"ep{part * 16 + i:03d}" for i in range(len(some))], "steps": [len(s["state"]) for s in some],
            **{n: [s[n].reshape(-1).tolist() for s in some] for n in some[0]}}), folder / f"demos-{part}.parquet")


def _arrays(folder: Path, made: list[Streams]) -> None:
    np.savez(folder / "demos.npz", **{n: np.stack([s[n][:48] for s in made]) for n in made[0]})


def _made(edit: Edit = lambda row, one: one, seed: int = 0) -> list[Streams]:
    rng = np.random.default_rng(seed)
    return [edit(row, _episode(rng, int(rng.integers(48, 80)))) for row in range(48)]


@pytest.mark.parametrize("write", [_lists, _arrays])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_stretch_of_episodes_whose_actions_run_ahead(seed: int, write: Any, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, _made(_ahead(2, range(18, 26)), seed))
    (found,) = seen_by(d188, tmp_path)
    assert found.severity is Severity.HIGH
    assert (found.measured["field"], found.measured["lag"], found.measured["count"]) in (
        ("action", -2, 8), ("state", 2, 8))
    assert "in 8 of 48 recordings" in found.statement


@pytest.mark.parametrize("write", [_lists, _arrays])
@pytest.mark.parametrize("edit", [_ahead(0, range(0)), _ahead(1, range(48)), _ahead(3, range(7, 8))])
def test_no_lag_a_lag_by_design_and_one_odd_episode_are_quiet(edit: Edit, write: Any, tmp_path: Path, seen_by: Seen
                                                              ) -> None:
    write(tmp_path, _made(edit))
    assert seen_by(d188, tmp_path) == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_windows_that_say_nothing_of_each_other_are_quiet(seed: int, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(seed)
    walks = rng.normal(size=(2, 300, 64, 3)).cumsum(axis=2)
    np.savez(tmp_path / "windows.npz", x=walks[0], z=walks[1])
    assert seen_by(d188, tmp_path) == []


def test_rows_without_numbers_and_counts_that_do_not_fit_are_read(tmp_path: Path, seen_by: Seen) -> None:
    made = _made(_ahead(2, range(18, 26)))
    made[20]["action"][3] = np.nan
    made[5]["state"] = made[5]["state"][:-1]
    _lists(tmp_path, made)
    (tmp_path / "demos-9.parquet").write_bytes(b"PAR1")
    assert seen_by(d188, tmp_path) == []
