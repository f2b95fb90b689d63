"""Recordings, as groups of one file, keys or files, of which a few have a stream that is shifted against the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.examination import examine
from traindx_tools.on_data.rules import d188_streams_apart as d188

Array = np.ndarray[Any, Any]
Streams = dict[str, Array]
Seen = Callable[[ModuleType, Path], list[Finding]]


def demo(rng: np.random.Generator, rows: int) -> Streams:
    """A point that is driven to a goal: position and velocity beside the force, which depends on both."""
    goal, x, v = rng.normal(size=3) * 2, rng.normal(size=3), np.zeros(3)
    seen, done = [], []
    for _ in range(rows):
        if rng.random() < 0.03:
            goal = rng.normal(size=3) * 2
        force = np.clip(goal - x - 1.2 * v + 0.3 * rng.normal(size=3), -2, 2)
        seen.append(np.concatenate([x, v]))
        done.append(force)
        v = v + 0.1 * force
        x = x + 0.1 * v
    return {"obs": np.array(seen), "actions": np.array(done)}


def moved(streams: Streams, name: str, by: int) -> Streams:
    """The stream `by` rows too late, its first value repeated; too early: its last one."""
    values = streams[name]
    late = np.concatenate([np.repeat(values[:1], by, 0), values[:-by]]) if by > 0 else np.concatenate(
        [values[-by:], np.repeat(values[-1:], -by, 0)])
    return {**streams, name: late}


def demos(edit: Callable[[int, Streams], Streams] = lambda i, s: s, count: int = 16, seed: int = 0) -> list[Streams]:
    rng = np.random.default_rng(seed)
    return [edit(i, demo(rng, int(rng.integers(80, 160)))) for i in range(count)]


def as_hdf5(folder: Path, made: list[Streams]) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "demos.h5", "w") as file:
        for i, streams in enumerate(made):
            for name, values in streams.items():
                file[f"data/demo_{i}/{name}"] = values


def as_keys(folder: Path, made: list[Streams]) -> None:
    np.savez(folder / "demos.npz", **{f"ep{i}_{n}": v for i, s in enumerate(made) for n, v in s.items()})


def as_files(folder: Path, made: list[Streams]) -> None:
    for i, streams in enumerate(made):
        np.savez(folder / f"session_{i:02d}.npz", **streams)


def two_late(i: int, streams: Streams) -> Streams:
    return moved(streams, "actions", 2) if i in (3, 9) else streams


@pytest.mark.parametrize(("write", "kind"), [(as_hdf5, "groups"), (as_keys, "groups"), (as_files, "files")])
def test_a_stream_that_is_late_in_a_few_recordings_is_told(
        write: Callable[[Path, list[Streams]], None], kind: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, demos(two_late))
    (found,) = seen_by(d188, tmp_path)
    assert found.severity is Severity.HIGH
    assert (found.measured["kind"], found.measured["count"], found.measured["of"]) == (kind, 2, 16)
    assert abs(int(str(found.measured["lag"]))) == 2
    assert "2 rows too" in found.statement
    assert all(any(str(n) in str(r) for r in found.measured["recordings"]) for n in (3, 9))  # type: ignore[attr-defined]


@pytest.mark.parametrize("by", [1, -1, -3])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_lags_of_either_sign(by: int, seed: int, tmp_path: Path, seen_by: Seen) -> None:
    as_keys(tmp_path, demos(lambda i, s: moved(s, "actions", by) if i == 5 else s, seed=seed))
    (found,) = seen_by(d188, tmp_path)
    sign = 1 if found.measured["field"] == "actions" else -1
    assert found.measured["lag"] == sign * by


def test_of_three_streams_the_one_that_is_off_is_named(tmp_path: Path, seen_by: Seen) -> None:
    def third(i: int, streams: Streams) -> Streams:
        torque = streams["actions"] @ np.array([[1, 0.4], [-0.3, 1], [0.2, 0.1]])
        with_force = {**streams, "torque": torque + 0.1 * np.random.default_rng(i).normal(size=torque.shape)}
        return moved(with_force, "torque", 1) if i in (2, 11) else with_force

    as_keys(tmp_path, demos(third))
    (found,) = seen_by(d188, tmp_path)
    assert (found.measured["field"], found.measured["lag"]) == ("torque", 1)


def noisy(i: int, streams: Streams) -> Streams:
    noise = 3 * np.random.default_rng(i).normal(size=streams["actions"].shape)
    return {**streams, "actions": streams["actions"] + noise} if i == 4 else streams


def still(i: int, streams: Streams) -> Streams:
    return {n: np.full_like(v, v[0, 0]) for n, v in streams.items()} if i == 4 else streams


def by_design(i: int, streams: Streams) -> Streams:
    return moved(streams, "actions", 2)


def of_all_lags(i: int, streams: Streams) -> Streams:
    return moved(streams, "actions", i % 4 + 1)


def random_actions(i: int, streams: Streams) -> Streams:
    return {**streams, "actions": np.random.default_rng(i).normal(size=streams["actions"].shape)}


def other_policy(i: int, streams: Streams) -> Streams:
    return {**streams, "actions": -streams["actions"]} if i == 4 else streams


def slow(i: int, streams: Streams) -> Streams:
    t = np.arange(len(streams["obs"])) / 60.0
    level = np.random.default_rng(i).normal(size=2) * 3
    return {"obs": np.stack([np.sin(t) + level[0], t], 1), "actions": np.stack([np.cos(t) + level[1], -t], 1)}


@pytest.mark.parametrize("edit", [lambda i, s: s, noisy, still, by_design, of_all_lags, random_actions, other_policy,
                                  slow])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_recordings_that_fit_or_are_of_another_kind_are_quiet(
        edit: Callable[[int, Streams], Streams], seed: int, tmp_path: Path, seen_by: Seen) -> None:
    as_keys(tmp_path, demos(edit, seed=seed))
    assert seen_by(d188, tmp_path) == []


def test_a_file_of_groups_is_no_table(tmp_path: Path) -> None:
    """Arrays of several groups that have one length by chance are not judged as columns of one table (D142)."""
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        as_keys(folder, demos(seed=seed))
        assert examine([folder]).wrong == ()


@pytest.mark.slow
def test_hundreds_of_groups_are_read(tmp_path: Path, seen_by: Seen) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "demos.h5", "w") as file:
        for i, streams in enumerate(demos(two_late, count=100)):
            for name, values in {**streams, **{f"more{k}": streams["obs"][:, :1] for k in range(12)}}.items():
                file[f"data/demo_{i}/{name}"] = values
    assert len(seen_by(d188, tmp_path)) == 1


@pytest.mark.parametrize(("late", "told"), [(2, 1), (None, 0)])
def test_of_four_long_files_one_may_lag(late: int | None, told: int, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    as_files(tmp_path, [moved(s, "actions", 1) if i == late else s for i in range(4) if (s := demo(rng, 900))])
    found = seen_by(d188, tmp_path)
    assert [(f.measured["count"], f.measured["of"]) for f in found] == [(1, 4)] * told


def test_few_or_short_recordings_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    as_keys(tmp_path, demos(two_late, count=4))
    np.savez(tmp_path / "short.npz", **{f"ep{i}_{n}": v[:20] for i, s in enumerate(demos(two_late))
                                        for n, v in s.items()})
    assert seen_by(d188, tmp_path) == []


def test_streams_of_other_lengths_and_empty_ones_are_read(tmp_path: Path, seen_by: Seen) -> None:
    made = demos(two_late)
    made[1] = {"obs": made[1]["obs"], "actions": made[1]["actions"][:-1]}
    made[2] = {"obs": np.zeros((0, 6)), "actions": np.zeros((0, 3))}
    made[6] = {"obs": made[6]["obs"] * np.nan, "actions": made[6]["actions"]}
    as_keys(tmp_path, made)
    (found,) = seen_by(d188, tmp_path)
    assert (found.measured["count"], found.measured["of"]) == (2, 13)
