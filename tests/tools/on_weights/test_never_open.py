"""Units whose bias no input overcomes: in torch, flax, Keras and npz files, beside gates, heads and raw inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

Arrays = dict[str, Any]
Shapes = tuple[tuple[int, ...], ...]
MLP = ((64, 20), (64, 64), (48, 64), (6, 48))
CNN = ((16, 3, 3, 3), (32, 16, 3, 3), (64, 32 * 16), (10, 64))


def _net(shapes: Shapes = MLP, seed: int = 0, names: str = "net.{}.") -> Arrays:
    rng = np.random.default_rng(seed)
    made: Arrays = {}
    for at, shape in enumerate(shapes):
        into = int(np.prod(shape[1:]))
        grown = rng.lognormal(0, 0.25, (shape[0], *[1] * (len(shape) - 1)))
        made[f"{names.format(2 * at)}weight"] = (rng.standard_normal(shape) * grown * (2 / into) ** 0.5).astype("<f4")
        made[f"{names.format(2 * at)}bias"] = (rng.standard_normal(shape[0]) * 0.05).astype("<f4")
    return made


def _closed(arrays: Arrays, name: str, share: float, by: float = 9.0) -> Arrays:
    """The same with biases below zero by so many norms of their weights."""
    norm = np.sqrt((arrays[name.replace("bias", "weight")].astype(float) ** 2).reshape(
        len(arrays[name]), -1).sum(1))
    units = np.random.default_rng(3).permutation(len(norm))[: int(share * len(norm))]
    shifted = arrays[name].copy()
    shifted[units] = (-by * norm[units]).astype(shifted.dtype)
    return {**arrays, name: shifted}


def _turned(arrays: Arrays, names: Callable[[int], tuple[str, str]]) -> Arrays:
    """As Keras and flax keep them: the outputs last, the bias after the kernel."""
    made: Arrays = {}
    for at, head in enumerate(dict.fromkeys(n.rpartition(".")[0] for n in arrays)):
        weight, bias = names(at)
        value = arrays[f"{head}.weight"]
        made[weight] = np.ascontiguousarray(np.moveaxis(value, (0, 1), (-1, -2)))
        made[bias] = arrays[f"{head}.bias"]
    return made


def _keras(path: Path, arrays: Arrays) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "m.weights.h5", "w") as file:
        for at, head in enumerate(dict.fromkeys(n.rpartition(".")[0] for n in arrays)):
            value = arrays[f"{head}.weight"]
            group = file.create_group(f"layers/dense{f'_{at}' if at else ''}/vars")
            group["0"], group["1"] = np.ascontiguousarray(np.moveaxis(value, (0, 1), (-1, -2))), arrays[f"{head}.bias"]
    return path / "m.weights.h5"


def _written(form: str, folder: Path, arrays: Arrays) -> Path:
    if form == "keras":
        return _keras(folder, arrays)
    if form == "flax":
        return Path(planted.write("msgpack", folder, _turned(arrays, lambda i: (
            f"params/Dense_{i}/kernel", f"params/Dense_{i}/bias")), "m"))
    if form == "plain npz":
        return Path(planted.write("npz", folder, _turned(arrays, lambda i: (f"W{i}", f"b{i}")), "m"))
    return Path(planted.write(form, folder, arrays, "m"))


def _told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO and f.rule in ("W147", "W105")]


@pytest.mark.parametrize("form", ["torch", "safetensors", "sharded", "npz", "flax", "keras", "plain npz"])
@pytest.mark.parametrize(("layer", "share"), [("net.0.bias", 0.4), ("net.2.bias", 0.7), ("net.4.bias", 1.0)])
def test_a_large_part_of_a_hidden_layer(layer: str, share: float, form: str, tmp_path: Path) -> None:
    (finding,) = _told(_written(form, tmp_path, _closed(_net(), layer, share, 12.0)))
    size = len(_net()[layer])
    assert (finding.rule, finding.measured["of"]) == ("W147", size)
    assert 0.8 * share * size <= finding.measured["units"] <= share * size


@pytest.mark.parametrize("form", ["torch", "keras"])
@pytest.mark.parametrize("layer", ["net.0.bias", "net.2.bias", "net.4.bias"])
def test_convolutions_and_what_lies_behind_them(layer: str, form: str, tmp_path: Path) -> None:
    (finding,) = _told(_written(form, tmp_path, _closed(_net(CNN), layer, 0.5, 20.0)))
    assert 0.4 * len(_net(CNN)[layer]) <= finding.measured["units"] <= 0.5 * len(_net(CNN)[layer])


def test_a_single_hidden_layer_is_judged_by_its_other_units(tmp_path: Path) -> None:
    (finding,) = _told(_written("torch", tmp_path, _closed(_net(((40, 12), (3, 40))), "net.0.bias", 0.5)))
    assert finding.measured["units"] == 20


@pytest.mark.parametrize("still", [True, False])
def test_moments_are_asked(still: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    arrays = {n: torch.tensor(v) for n, v in _closed(_net(), "net.2.bias", 0.5).items()}
    closed = arrays["net.2.bias"] < -2
    rng = np.random.default_rng(1)
    state = {}
    for at, (name, value) in enumerate(arrays.items()):
        squares = torch.tensor(rng.uniform(0.5, 2, value.shape).astype("<f4")) * 1e-5
        if still and name.startswith("net.2"):
            squares[closed] = 0
        state[at] = {"step": torch.tensor(900.0), "exp_avg": squares**0.5 * 0.1 * torch.sign(squares - 1e-5),
                     "exp_avg_sq": squares}
    groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "params": list(range(len(arrays)))}]
    torch.save({"model": arrays, "optimizer": {"state": state, "param_groups": groups}}, tmp_path / "m.pt")
    told = [f for f in _told(tmp_path / "m.pt") if f.rule == "W147"]
    assert len(told) == still
    assert all("moments are zero" in f.statement for f in told)


def _raw_inputs() -> Arrays:
    """A first layer that takes values of a thousand: biases far from zero on both sides."""
    arrays = _net()
    arrays["net.0.weight"] /= 1000
    arrays["net.0.bias"] = (np.random.default_rng(2).standard_normal(64) * 2).astype("<f4")
    return arrays


def _class_frequencies() -> Arrays:
    arrays = _net(((64, 20), (64, 64), (40, 64)))
    arrays["net.4.weight"] *= 0.05
    arrays["net.4.bias"] = np.log(np.random.default_rng(2).dirichlet(np.full(40, 0.5)) + 1e-6).astype("<f4")
    return arrays


def _detection_heads() -> Arrays:
    made = _net(((64, 3, 3, 3), (64, 64, 3, 3)), names="trunk.{}.")
    made |= _net(((64, 64, 3, 3), (80, 64, 1, 1)), 1, "scores.{}.")
    made |= _net(((64, 64, 3, 3), (4, 64, 1, 1)), 2, "box.{}.")
    made["scores.2.weight"] *= 0.05
    made["scores.2.bias"] = np.full(80, -4.6, "<f4") + made["scores.2.bias"] * 0.1
    return made


def _variational() -> Arrays:
    made = _net(((64, 20), (64, 64)), names="encoder.{}.")
    made |= _net(((16, 64),), 1, "mean.{}.") | _net(((16, 64),), 2, "spread.{}.")
    made["spread.0.bias"] = np.full(16, -9, "<f4") + made["spread.0.bias"]
    return made | _net(((64, 16), (20, 64)), 3, "decoder.{}.")


def _normalised() -> Arrays:
    made: Arrays = {}
    for at, (name, value) in enumerate(_closed(_net(CNN), "net.2.bias", 0.6, 12.0).items()):
        made[name] = value
        if at in (1, 3):
            size, rng = len(value), np.random.default_rng(at)
            made |= {f"net.{at}.weight": rng.uniform(0.5, 1.5, size).astype("<f4"),
                     f"net.{at}.bias": (rng.standard_normal(size) * 0.2).astype("<f4"),
                     f"net.{at}.running_mean": value + rng.standard_normal(size).astype("<f4") * 0.3,
                     f"net.{at}.running_var": rng.uniform(0.5, 2, size).astype("<f4")}
    return made


def _gates() -> Arrays:
    rng = np.random.default_rng(0)
    made: Arrays = {"embed.weight": rng.standard_normal((90, 32)).astype("<f4") * 0.3}
    for part, into in (("ih", 32), ("hh", 32)):
        made[f"rnn.weight_{part}_l0"] = (rng.standard_normal((128, into)) * 0.1).astype("<f4")
    for part in ("ih", "hh"):
        made[f"rnn.bias_{part}_l0"] = np.concatenate([rng.standard_normal(32) * 0.1 - 6, np.ones(96)]).astype("<f4")
    return made | _net(((64, 32), (90, 64)), 1, "head.{}.")


def _sparse_dictionary() -> Arrays:
    """An autoencoder all of whose units have a high threshold."""
    arrays = _net(((256, 32), (32, 256)))
    norm = np.sqrt((arrays["net.0.weight"] ** 2).sum(1))
    arrays["net.0.bias"] = (-norm * np.random.default_rng(1).uniform(2, 14, 256)).astype("<f4")
    return arrays


def _a_few_dead_units() -> Arrays:
    return _closed(_net(), "net.2.bias", 0.1)


@pytest.mark.parametrize("form", ["torch", "npz"])
@pytest.mark.parametrize("sound", [_net, _raw_inputs, _class_frequencies, _detection_heads, _variational, _normalised,
                                   _gates, _sparse_dictionary, _a_few_dead_units])
def test_biases_below_zero_by_design(sound: Callable[[], Arrays], form: str, tmp_path: Path) -> None:
    assert [f.statement for f in _told(_written(form, tmp_path, sound())) if f.rule == "W147"] == []


def test_biases_that_are_no_numbers(tmp_path: Path) -> None:
    arrays = _closed(_net(), "net.2.bias", 0.5)
    arrays["net.2.bias"][3] = np.nan
    report = examine(_written("torch", tmp_path, arrays))
    assert {f.rule for f in report.findings} >= {"W101"}
    assert not report.notes


def test_a_bias_of_another_length(tmp_path: Path) -> None:
    arrays = _net()
    arrays["net.2.bias"] = arrays["net.2.bias"][:50] - 40
    assert [f for f in _told(_written("torch", tmp_path, arrays)) if f.rule == "W147"] == []
