"""D179: layers of a checkpoint whose means and variances are those of the columns in another order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d179_statistics_in_other_order as d179
from traindx_tools.on_data.stored_statistics import of_weights

Seen = Callable[[ModuleType, Path], list[Finding]]
Array = np.ndarray[Any, Any]
NAMES = ["speed", "age", "weight", "angle", "load", "drift"]
MEANS, SPREADS = np.array([30.0, 4, 900, -2, 0.5, 120]), np.array([5.0, 2, 80, 0.3, 0.1, 33])


def table(folder: Path, rows: int = 600) -> Array:
    rng = np.random.default_rng(0)
    x = MEANS + SPREADS * rng.normal(size=(rows, 6))
    lines = [",".join(f"{v:.4f}" for v in row) + f",{int(row[0] > 30)}" for row in x]
    (folder / "train.csv").write_text("\n".join([",".join([*NAMES, "broken"]), *lines]))
    return x


def keras(folder: Path, mean: Array, variance: Array) -> Path:
    h5py = pytest.importorskip("h5py")
    path = folder / "model.weights.h5"
    with h5py.File(path, "w") as file:
        for layer, held in (("normalization", [mean, variance, np.int32(0)]),
                            ("dense", [np.ones((6, 8), np.float32), np.zeros(8, np.float32)])):
            for i, value in enumerate(held):
                file.create_dataset(f"layers/{layer}/vars/{i}", data=np.asarray(value))
    return path


def torch_file(folder: Path, mean: Array, variance: Array) -> Path:
    torch = pytest.importorskip("torch")
    held = {"net.0.weight": torch.randn(8, 6), "net.0.bias": torch.zeros(8),
            "scaler.mean": torch.tensor(mean), "scaler.std": torch.tensor(np.sqrt(variance))}
    torch.save({"model": held}, folder / "model.pt")
    return folder / "model.pt"


def plain(folder: Path, mean: Array, variance: Array) -> Path:
    (folder / "scaler.json").write_text(json.dumps({"mean_": mean.tolist(), "var_": variance.tolist()}))
    return folder / "scaler.json"


def two_rows(folder: Path, mean: Array, variance: Array) -> Path:
    np.save(folder / "stats.npy", np.stack([mean, np.sqrt(variance)]))
    return folder / "stats.npy"


def two_columns(folder: Path, mean: Array, variance: Array) -> Path:
    np.save(folder / "stats.npy", np.stack([mean, np.sqrt(variance)], axis=1))
    return folder / "stats.npy"


WRITE = [keras, torch_file, plain, two_rows, two_columns]


@pytest.mark.parametrize("write", WRITE)
@pytest.mark.parametrize(("order", "how"), [
    (np.argsort(NAMES), "sorted by name"), (np.arange(6)[::-1], "reversed"), ([2, 0, 1, 4, 5, 3], "in another order"),
])
def test_statistics_of_columns_in_another_order(write: Any, order: Any, how: str, tmp_path: Path, seen_by: Seen
                                                ) -> None:
    x = table(tmp_path)
    write(tmp_path, x.mean(axis=0)[order].astype(np.float32), x.var(axis=0)[order].astype(np.float32))
    (told,) = seen_by(d179, tmp_path)
    assert told.measured["how"] == how
    assert told.measured["channels"] == tuple(NAMES[k] for k in order)


@pytest.mark.parametrize("write", WRITE)
def test_statistics_in_order_of_other_data_and_of_a_list_beside(write: Any, tmp_path: Path, seen_by: Seen) -> None:
    x = table(tmp_path)
    write(tmp_path, x.mean(axis=0), x.var(axis=0))
    assert seen_by(d179, tmp_path) == []
    write(tmp_path, 3 * x.mean(axis=0) + 1, 9 * x.var(axis=0))
    assert seen_by(d179, tmp_path) == []
    order = np.argsort(NAMES)
    (tmp_path / "features.json").write_text(json.dumps({"features": sorted(NAMES)}))
    write(tmp_path, x.mean(axis=0)[order], x.var(axis=0)[order])
    assert seen_by(d179, tmp_path) == []


def test_columns_that_are_alike_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "train.npz", x=rng.normal(size=(900, 6)))
    torch_file(tmp_path, rng.normal(size=6) * 0.02, np.ones(6))
    assert seen_by(d179, tmp_path) == []


def test_channels_of_an_array(tmp_path: Path, seen_by: Seen) -> None:
    x = (MEANS + SPREADS * np.random.default_rng(2).normal(size=(600, 6))).astype(np.float32)
    np.savez(tmp_path / "train.npz", x=x)
    order = [1, 2, 3, 4, 5, 0]
    torch_file(tmp_path, x.mean(axis=0)[order], x.var(axis=0)[order])
    (told,) = seen_by(d179, tmp_path)
    assert told.measured["moved"] == 6


def test_checkpoints_that_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"PK\x03\x04cut")
    (tmp_path / "b.h5").write_bytes(b"\x89HDF\r\n\x1a\njunk")
    (tmp_path / "c.safetensors").write_bytes(b"")
    assert of_weights(sorted(tmp_path.iterdir())) == ()
    torch_file(tmp_path, np.full(6, np.nan), np.ones(6))
    assert of_weights([tmp_path / "model.pt"]) == ()


@pytest.mark.parametrize(("order", "told"), [([0, 1, 2, 4, 3, 5], 2), ([2, 0, 1, 3, 4, 5], 3), ([0, 1, 2, 3, 4, 5], 0)])
@pytest.mark.parametrize("write", [keras, torch_file])
def test_a_few_in_each_others_places(write: Any, order: list[int], told: int, tmp_path: Path, seen_by: Seen) -> None:
    x = table(tmp_path)
    write(tmp_path, x.mean(axis=0)[order], x.var(axis=0)[order])
    assert [f.measured["moved"] for f in seen_by(d179, tmp_path)] == ([told] if told else [])
