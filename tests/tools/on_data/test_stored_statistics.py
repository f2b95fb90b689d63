"""Means and standard deviations beside the data that disagree with them for one channel, and what looks like it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d138_stored_statistics

Seen = Callable[[ModuleType, Path], list[Finding]]
NAMES = ["temperature", "pressure", "humidity", "wind"]
LEVEL, SIZE = np.array([15.0, 1013.0, 60.0, 5.0]), np.array([8.0, 12.0, 20.0, 3.0])


def measured(rows: int, rng: np.random.Generator) -> Any:
    return LEVEL[:, None] + SIZE[:, None] * rng.normal(size=(rows, 4, 32))


def write_data(folder: Path, form: str, x: Any, split: str = "train") -> None:
    if form == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / f"{split}.h5", "w") as file:
            file["x"] = x
            file["channel_names"] = NAMES
    elif form == "npz":
        np.savez(folder / f"{split}.npz", x=x)
    else:
        flat = np.moveaxis(x, 1, 2).reshape(-1, 4)
        np.savetxt(folder / f"{split}.csv", flat, "%.6g", ",", header=",".join(NAMES), comments="")


def write_statistics(folder: Path, form: str, mean: Any, std: Any) -> None:
    if form == "json by channel":
        said = {n: {"mean": float(m), "std": float(s)} for n, m, s in zip(NAMES, mean, std, strict=True)}
        (folder / "norm_stats.json").write_text(json.dumps(said))
    elif form == "json lists":
        said_lists = {"x": {"channels": NAMES, "mean": list(map(float, mean)), "std": list(map(float, std))}}
        (folder / "norm_stats.json").write_text(json.dumps(said_lists))
    elif form == "yaml":
        rows = [f"  {n}: {v:.6g}" for n, v in zip(NAMES, mean, strict=True)]
        more = [f"  {n}: {v:.6g}" for n, v in zip(NAMES, std, strict=True)]
        (folder / "stats.yaml").write_text("\n".join(["mean:", *rows, "std:", *more]) + "\n")
    elif form == "scaler":
        (folder / "scaler.json").write_text(
            json.dumps({"mean_": list(map(float, mean)), "var_": [float(s) ** 2 for s in std],
                        "feature_names_in_": NAMES}))
    else:
        np.savez(folder / "norm.npz", mean=mean, std=std)


@pytest.mark.parametrize(
    ("data", "statistics"),
    [("hdf5", "json by channel"), ("hdf5", "json lists"), ("npz", "npz"), ("csv", "yaml"), ("csv", "scaler")],
)
@pytest.mark.parametrize("fault", ["mean", "std", "exchanged"])
def test_one_channel_is_off(data: str, statistics: str, fault: str, seen_by: Seen, tmp_path: Path) -> None:
    x = measured(200, np.random.default_rng(0))
    write_data(tmp_path, data, x)
    mean, std = x.mean(axis=(0, 2)), x.std(axis=(0, 2))
    if fault == "mean":
        mean[2] += 40
    elif fault == "std":
        std[2] /= 3
    else:
        mean[[1, 2]], std[[1, 2]] = mean[[2, 1]], std[[2, 1]]
    write_statistics(tmp_path, statistics, mean, std)
    (told,) = seen_by(d138_stored_statistics, tmp_path)
    channels = {"mean": ("humidity",), "std": ("humidity",), "exchanged": ("pressure", "humidity")}[fault]
    numbered = {"humidity": "channel 2", "pressure": "channel 1"}
    assert told.measured["channels"] == tuple(numbered[c] if statistics == "npz" else c for c in channels)
    assert told.measured["kind"] == ("exchanged" if fault == "exchanged" else "statistics")


def test_statistics_of_training_alone(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = measured(200, rng)
    write_data(tmp_path, "npz", x)
    warmer = measured(100, rng) + np.array([9.0, 0, 0, 0])[:, None]
    write_data(tmp_path, "npz", warmer, "test")
    every = np.concatenate([x, warmer])
    write_statistics(tmp_path, "json lists", every.mean(axis=(0, 2)), every.std(axis=(0, 2)))
    assert seen_by(d138_stored_statistics, tmp_path) == []


def test_a_channel_that_is_transformed_first(seen_by: Seen, tmp_path: Path) -> None:
    x = measured(200, np.random.default_rng(2))
    x[:, 3] = np.exp(x[:, 3] / 3)
    write_data(tmp_path, "npz", x)
    y = x.copy()
    y[:, 3] = np.log1p(y[:, 3])
    write_statistics(tmp_path, "json lists", y.mean(axis=(0, 2)), y.std(axis=(0, 2)))
    assert seen_by(d138_stored_statistics, tmp_path) == []


def test_statistics_of_other_data_and_other_numbers(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "train.npz", x=rng.integers(0, 256, (100, 3, 8, 8), np.uint8))
    said = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "name": "imagenet"}
    (tmp_path / "stats.json").write_text(json.dumps(said))
    results = {"accuracy": {"mean": 0.9, "std": 0.01}, "f1": {"mean": 1, "std": 0.1}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert seen_by(d138_stored_statistics, tmp_path) == []


def test_false_alarms_over_many_sets(seen_by: Seen, tmp_path: Path) -> None:
    """Thirty sets of heavy tails, each with statistics of another half of the same source."""
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        x = rng.standard_t(3, size=(160, 6)) * rng.lognormal(0, 2, 6) + rng.normal(0, 5, 6)
        np.savez(folder / "train.npz", x=x[:80])
        (folder / "stats.json").write_text(json.dumps({"mean": x[80:].mean(0).tolist(), "std": x[80:].std(0).tolist()}))
        alarms += len(seen_by(d138_stored_statistics, folder))
    assert alarms == 0


@pytest.mark.parametrize(
    "text",
    ['{"mean": [1, "a", 3], "std": [1, 2, 3]}', '{"mean": {"a": 1}, "std": [1]}', "{", "[]",
     '{"mean": [1, 2, NaN, 4], "std": [0, 0, 0, 0]}'],
)
def test_what_is_no_statistics(text: str, seen_by: Seen, tmp_path: Path) -> None:
    write_data(tmp_path, "npz", measured(60, np.random.default_rng(4)))
    (tmp_path / "norm_stats.json").write_text(text)
    assert seen_by(d138_stored_statistics, tmp_path) == []


@pytest.mark.parametrize(("factor", "told"), [(10 / np.log(10), True), (np.log(10) / 10, True), (np.log(10), True),
                                              (1.0, False), (3.0, False), (1000.0, False)])
def test_statistics_of_another_logarithm(factor: float, told: bool, tmp_path: Path, seen_by: Seen) -> None:
    """Powers of ten and other factors may be a unit that the code undoes."""
    rng = np.random.default_rng(2)
    x = np.linspace(-6, -2, 16) + rng.uniform(0.5, 1.5, 16) * rng.normal(size=(300, 40, 16))
    np.savez(tmp_path / "train.npz", x=x, y=np.arange(300) % 3)
    flat = factor * x.reshape(-1, 16)
    np.savez(tmp_path / "norm.npz", mean=flat.mean(axis=0), std=flat.std(axis=0))
    found = seen_by(d138_stored_statistics, tmp_path)
    assert [f.measured["kind"] for f in found] == (["logarithms"] if told else [])
