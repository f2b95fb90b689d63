"""Weights as Keras writes them: names, order, packing; what is refused; statistics of two layers exchanged."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import write_safetensors

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine as examine_data
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.of_run import is_weights
from traindx_tools.on_weights.tensor import Damaged

h5py = pytest.importorskip("h5py")
Layer = tuple[Any, Any, Any, Any, Any]
WIDTH = 32


def network(seed: int = 0, layers: int = 7) -> list[Layer]:
    """Kernel (inputs, outputs), gamma, beta, mean and variance of layers through which data were sent."""
    rng = np.random.default_rng(seed)
    x = np.maximum(0, rng.normal(size=(512, WIDTH)))
    made: list[Layer] = []
    for _ in range(layers):
        kernel = rng.normal(size=(WIDTH, WIDTH)) * 0.25 * rng.lognormal(0, 0.35, WIDTH)
        z = x @ kernel
        mean, variance = z.mean(axis=0), z.var(axis=0)
        gamma, beta = 1 + 0.15 * rng.normal(size=WIDTH), 0.2 * rng.normal(size=WIDTH)
        x = np.maximum(0, (z - mean) / np.sqrt(variance) * gamma + beta)
        made.append((kernel, gamma, beta, mean, variance))
    return made


def exchanged(layers: list[Layer], one: int, other: int) -> list[Layer]:
    """The same with mean and variance of two layers in each other's place."""
    out = list(layers)
    out[one], out[other] = (*layers[one][:3], *layers[other][3:]), (*layers[other][:3], *layers[one][3:])
    return out


def write_keras(path: Path, layers: list[Layer], pack: str | None = None, named: bool = False) -> Path:
    """The layout of Keras 3."""
    with h5py.File(path, "w") as file:
        for k, (kernel, *norm) in enumerate(layers):
            mark = f"_{k}" if k else ""
            conv, normal = f"layers/conv2d{mark}", f"layers/batch_normalization{mark}"
            file.create_dataset(f"{conv}/vars/0", data=kernel[None, None].astype(np.float32), compression=pack)
            for at, values in enumerate(norm):
                file.create_dataset(f"{normal}/vars/{at}", data=values.astype(np.float32), compression=pack)
            if named:
                file[normal].attrs["name"] = f"block{k}_bn"
        file["layers/dense/vars/0"] = np.random.default_rng(1).normal(size=(WIDTH, 10)).astype(np.float32) * 0.2
        file["layers/dense/vars/1"] = np.random.default_rng(2).normal(size=10).astype(np.float32) * 0.2
        file["optimizer/vars/0"] = np.int64(1000)
    return path


def as_torch(layers: list[Layer]) -> dict[str, Any]:
    names = ("conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")
    return {f"layers.{k}.{n}": np.ascontiguousarray(v.T[:, :, None, None] if n == "conv.weight" else v, np.float32)
            for k, layer in enumerate(layers) for n, v in zip(names, layer, strict=True)}


def alarms(path: Path) -> list[Finding]:
    return [f for f in examine(path).findings if f.severity is not Severity.INFO]


@pytest.mark.parametrize("pack", [None, "gzip"])
def test_names_by_what_the_variables_are(pack: str | None, tmp_path: Path) -> None:
    layers = network()
    checkpoint = read_checkpoint(write_keras(tmp_path / "m.weights.h5", layers, pack, named=True))
    tensors = checkpoint.weights.tensors
    assert tensors["conv2d_3.kernel"].shape == (1, 1, WIDTH, WIDTH)
    np.testing.assert_allclose(tensors["block3_bn.moving_variance"].load(), layers[3][4], rtol=1e-6)
    assert list(tensors).index("conv2d_3.kernel") + 1 == list(tensors).index("block3_bn.gamma")
    assert {"dense.kernel", "dense.bias"} <= set(tensors)


def test_a_keras_file_lists_its_layers_in_order(tmp_path: Path) -> None:
    inner = write_keras(tmp_path / "inner.h5", network(layers=2))
    config = {"config": {"layers": [{"class_name": c} for c in (
        "InputLayer", "Conv2D", "BatchNormalization", "Conv2D", "BatchNormalization", "Dense")]}}
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.write(inner, "model.weights.h5")
        archive.writestr("config.json", json.dumps(config))
    names = list(read_checkpoint(tmp_path / "m.keras").weights.tensors)
    assert names[-2:] == ["dense.kernel", "dense.bias"]
    assert is_weights(str(tmp_path / "m.keras"))
    assert not alarms(tmp_path / "m.keras")


def test_an_older_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file.attrs["layer_names"] = [b"dense"]
        file["dense/dense/kernel:0"] = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    assert list(read_checkpoint(tmp_path / "old.h5").weights.tensors) == ["dense.kernel"]


@pytest.mark.parametrize("form", ["keras", "gzip", "torch"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_statistics_of_two_layers_exchanged(form: str, seed: int, tmp_path: Path) -> None:
    layers = exchanged(network(seed), 2, 5)
    path = (write_safetensors(tmp_path / "m.safetensors", as_torch(layers)) if form == "torch" else
            write_keras(tmp_path / "m.weights.h5", layers, "gzip" if form == "gzip" else None))
    found = [f for f in alarms(path) if f.measured.get("kind") == "exchanged"]
    assert len(found) == 2
    assert "_5" in found[0].statement or "layers.5" in found[0].statement


@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5))])
def test_healthy_layers(seed: int, tmp_path: Path) -> None:
    assert not alarms(write_keras(tmp_path / "m.weights.h5", network(seed)))
    assert not alarms(write_safetensors(tmp_path / "m.safetensors", as_torch(network(seed))))


def test_data_in_hdf5_are_no_weights_and_weights_no_data(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["x"] = np.zeros((50, 3), np.float32)
    assert not is_weights(str(tmp_path / "data.h5"))
    path = write_keras(tmp_path / "m.weights.h5", network(layers=2))
    assert is_weights(str(path))
    report = examine_data([path])
    assert not report.sets
    assert "weights of Keras" in report.artifacts[0].note


def test_what_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["layers/dense/vars/0"] = h5py.ExternalLink("/etc/passwd", "/x")
    with pytest.raises(UnreadableInput, match="refused"):
        read_checkpoint(tmp_path / "link.h5")
    with zipfile.ZipFile(tmp_path / "out.keras", "w") as archive:
        archive.writestr("../model.weights.h5", b"")
        archive.writestr("model.weights.h5", b"\x89HDF")
    with pytest.raises(UnreadableInput):
        read_checkpoint(tmp_path / "out.keras")


@pytest.mark.parametrize("kept", [600, 3000, 20_000])
def test_a_cut_file(kept: int, tmp_path: Path) -> None:
    path = write_keras(tmp_path / "m.weights.h5", network(layers=3))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(Damaged):
        read_checkpoint(path)
