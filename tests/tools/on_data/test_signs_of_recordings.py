"""Features whose sign is turned in a few recordings, and recordings that only look so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d213_signs_of_recordings as d213

Seen = Callable[[ModuleType, Path], list[Finding]]
Change = Callable[[int, Any, Any], tuple[Any, Any]]
COUNT = 32


def demonstration(rng: np.random.Generator) -> tuple[Any, Any]:
    """A point that is driven to a goal, as fast as it may: states with the goal, and velocities."""
    rows, goal, at = int(rng.integers(45, 90)), rng.uniform(-0.5, 0.5, 3), rng.uniform(-0.5, 0.5, 3)
    states, actions = [], []
    for _ in range(rows):
        move = np.clip(2 * (goal - at), -0.3, 0.3) + rng.normal(0, 0.03, 3)
        states.append(np.concatenate([at, goal]))
        actions.append(move)
        at = at + 0.05 * move
    return np.array(states), np.array(actions)


def write(folder: Path, form: str, change: Change) -> None:
    rng = np.random.default_rng(11)
    made = [change(k, *demonstration(rng)) for k in range(COUNT)]
    if form == "files":
        for k, (states, actions) in enumerate(made):
            np.savez(folder / f"episode_{k:03d}.npz", obs=states.astype(np.float32), act=actions.astype(np.float32))
        return
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "demos.h5", "w") as file:
        for k, (states, actions) in enumerate(made):
            file[f"data/demo_{k}/obs"], file[f"data/demo_{k}/actions"] = states, actions


def turned(*odd: int) -> Change:
    return lambda k, states, actions: (states, actions * ([1, -1, 1] if k in odd else [1, 1, 1]))


@pytest.mark.parametrize("form", ["files", "groups"])
@pytest.mark.parametrize("odd", [(4,), (4, 9, 20)])
def test_one_axis_in_a_few_recordings(form: str, odd: tuple[int, ...], tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, form, turned(*odd))
    (found,) = seen_by(d213, tmp_path)
    assert found.severity is Severity.HIGH
    assert found.measured["field"] in ("act", "actions")
    assert (found.measured["feature"], found.measured["count"]) == (1, len(odd))


@pytest.mark.parametrize("form", ["files", "groups"])
@pytest.mark.parametrize("change", [
    lambda k, s, a: (s, a),
    lambda k, s, a: (s * [1, -1, 1, 1, -1, 1], a * [1, -1, 1]) if k in (4, 9) else (s, a),  # mirrored as a whole
    lambda k, s, a: (s, a * [1, -1, 1]) if k % 2 else (s, a),  # two arms
    lambda k, s, a: (s, a + 0.5 * np.sin(np.arange(len(a)))[:, None]) if k == 4 else (s, a),
    lambda k, s, a: (s, np.random.default_rng(k).normal(size=a.shape)),  # nothing tells them
    lambda k, s, a: (s[::-1], a[::-1]) if k == 4 else (s, a),
    lambda k, s, a: (s, a * 0.2) if k == 4 else (s, a),
])
def test_recordings_that_differ(form: str, change: Change, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, form, change)
    assert seen_by(d213, tmp_path) == []


@pytest.mark.parametrize("seed", range(4))
def test_healthy_demonstrations_are_left_alone(seed: int, tmp_path: Path) -> None:
    """Each file moves at first and rests then, begins where it does, and ends when it is there."""
    rng = np.random.default_rng(100 + seed)
    for k in range(COUNT):
        states, actions = demonstration(rng)
        np.savez(tmp_path / f"demo_{k:03d}.npz", obs=states.astype(np.float32), actions=actions.astype(np.float32))
    assert not [f for f in examine([tmp_path]).findings if f.severity.rank > Severity.LOW.rank]


def test_broken(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "files", lambda k, s, a: (s * np.nan, a) if k == 3 else (s, a * 0))
    assert seen_by(d213, tmp_path) == []
