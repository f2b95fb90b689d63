"""Channels of one file in another order, whose level and scale are alike, and what looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.examination import examine
from traindx_tools.on_data.rules import d136_channels_exchanged

Seen = Callable[[ModuleType, Path], list[Finding]]


def leads(rows: int, rng: np.random.Generator, samples: int = 128) -> Any:
    """(rows, 4, samples): a common beat, a slow wave, smooth and white noise; each of mean 0 and spread 1."""
    time = np.arange(samples)
    beat = np.sin(rng.uniform(0.2, 0.4, (rows, 1)) * time + rng.uniform(0, 6, (rows, 1)))
    slow = np.cumsum(rng.normal(size=(rows, samples)), axis=1)
    white = rng.normal(size=(rows, samples))
    x = np.stack([beat + 0.3 * white, np.abs(beat) + 0.5 * rng.normal(size=beat.shape), slow, white], axis=1)
    x -= x.mean(axis=2, keepdims=True)
    return (x / x.std(axis=2, keepdims=True)).astype(np.float32)


def colours(rows: int, rng: np.random.Generator) -> Any:
    """(rows, 16, 16, 3): one smooth picture in three colours, the last one noisier and flatter."""
    grey = rng.normal(size=(rows, 16, 16)).cumsum(1).cumsum(2)
    grey = (grey - grey.mean(axis=(1, 2), keepdims=True)) / grey.std(axis=(1, 2), keepdims=True)
    noise = rng.normal(size=(rows, 16, 16, 3)) * np.array([0.15, 0.2, 0.8])
    x = grey[..., None] + noise
    x /= x.std(axis=(1, 2), keepdims=True)
    return np.clip(128 + 40 * x, 0, 255).astype(np.uint8)


def write(path: Path, x: Any, form: str) -> None:
    if form == "npz":
        np.savez(path.with_suffix(".npz"), x=x)
    elif form == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path.with_suffix(".h5"), "w") as file:
            file["x"] = x
    else:  # a recording: time below time
        flat = np.moveaxis(x, 1, 2).reshape(-1, x.shape[1])
        names = ",".join(f"lead_{k}" for k in range(x.shape[1]))
        np.savetxt(path.with_suffix(".csv"), flat, "%.5g", ",", header=names, comments="")


@pytest.mark.parametrize("form", ["npz", "hdf5", "csv"])
def test_two_leads_of_one_file(form: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(5):
        x = leads(40, rng)
        write(tmp_path / f"part_{i}", x[:, [0, 1, 3, 2]] if i == 3 else x, form)
    (told,) = seen_by(d136_channels_exchanged, tmp_path)
    assert told.measured["shard"].startswith("part_3.")
    assert told.measured["order"] == (0, 1, 3, 2)


def test_blue_for_red(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for i in range(4):
        x = colours(60, rng)
        write(tmp_path / f"part_{i}", x[..., ::-1] if i == 1 else x, "npz")
    (told,) = seen_by(d136_channels_exchanged, tmp_path)
    assert told.measured["order"] == (2, 1, 0)


def _other_device(x: Any, rng: np.random.Generator) -> Any:
    """Every channel smoothed and louder: like none of the others."""
    return 1.5 * (x + np.roll(x, 1, 2) + np.roll(x, 2, 2))


def _half_of_the_rows(x: Any, rng: np.random.Generator) -> Any:
    x = x.copy()
    x[::2] = x[::2][:, [0, 1, 3, 2]]
    return x


def _one_channel_dead(x: Any, rng: np.random.Generator) -> Any:
    x = x.copy()
    x[:, 2] = rng.normal(size=x[:, 2].shape)
    return x


@pytest.mark.parametrize("change", [_other_device, _half_of_the_rows, _one_channel_dead])
def test_what_is_no_other_order(change: Any, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for i in range(5):
        x = leads(40, rng)
        write(tmp_path / f"part_{i}", change(x, rng) if i == 2 else x, "npz")
    assert seen_by(d136_channels_exchanged, tmp_path) == []


def test_channels_that_are_alike(seen_by: Seen, tmp_path: Path) -> None:
    """Twenty sets of files whose channels are the same, and whose files each have a level of their own."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for i in range(5):
            x = rng.normal(size=(30, 4, 64)) + 0.3 * rng.normal(size=(1, 4, 1))
            write(folder / f"part_{i}", x * rng.uniform(0.8, 1.2, (1, 4, 1)), "npz")
        alarms += len(seen_by(d136_channels_exchanged, folder))
    assert alarms == 0


def test_values_that_are_not_finite(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for i in range(4):
        x = leads(30, rng)
        x[:5, 1] = np.nan
        write(tmp_path / f"part_{i}", x, "npz")
    (tmp_path / "part_9.npz").write_bytes(b"PK\x03\x04 and no more .npy")
    assert seen_by(d136_channels_exchanged, tmp_path) == []


def test_buckets_of_several_lengths_are_compared_by_length(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for length in (48, 160):
        for part in range(4):
            waves = np.stack([np.sin(np.arange(length) * (k + 1) / 3) * (k + 1) for k in range(4)])
            rows = waves[None] + rng.normal(size=(80, 4, length)) * 0.3
            np.savez(tmp_path / f"b{length}_{part}.npz", x=rows.astype(np.float32), y=rng.integers(0, 3, 80))
    report = examine([tmp_path])
    assert report.notes == ()
    assert [f for f in report.findings if f.rule == "D136"] == []


def _worn_otherwise(x: Any, rng: np.random.Generator) -> Any:
    """Each channel with a jitter of its own: two of the volunteers wear another model."""
    return (x + 0.8 * rng.normal(size=x.shape)).astype(np.float32)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_rotation_is_told_where_two_siblings_are_of_another_device(seed: int, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    for i in range(6):
        x = leads(60, rng)
        x = _worn_otherwise(x, rng) if i in (0, 3) else x[:, [2, 3, 0, 1]] if i == 4 else x
        write(tmp_path / f"part_{i}", x, "npz")
    (told,) = seen_by(d136_channels_exchanged, tmp_path)
    assert (told.measured["shard"], told.measured["order"]) == ("part_4.npz", (2, 3, 0, 1))


@pytest.mark.parametrize("odd", [(0, 3), (0,), (0, 2, 3)])
def test_files_of_two_devices_in_one_order_are_quiet(odd: tuple[int, ...], seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for i in range(6):
        x = leads(60, rng)
        write(tmp_path / f"part_{i}", _worn_otherwise(x, rng) if i in odd else x, "npz")
    assert seen_by(d136_channels_exchanged, tmp_path) == []


def test_channels_of_other_scales_are_told_once(tmp_path: Path) -> None:
    """Of an accelerometer and a gyroscope that changed places the order is told, and not each channel's scale."""
    rng = np.random.default_rng(11)
    for i in range(6):
        x = leads(60, rng) * np.array([1.0, 1.0, 9.0, 9.0])[None, :, None]
        write(tmp_path / f"part_{i}", x[:, [2, 3, 0, 1]] if i == 4 else x, "npz")
    assert [f.rule for f in examine([tmp_path]).wrong] == ["D136"]
