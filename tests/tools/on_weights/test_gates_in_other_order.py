"""A recurrent layer whose gates stand in the order of another library, told by labelled sequences beside it (W157)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")

UNITS, INPUTS, CLASSES, STEPS, ROWS = 20, 4, 4, 24, 400
Array = np.ndarray[Any, Any]


def _network(kind: str, seed: int) -> tuple[Any, Any]:
    """Drawn with large weights, so that its gates matter, and outputs of about one level."""
    torch.manual_seed(seed)
    layer = getattr(torch.nn, kind)(INPUTS, UNITS, batch_first=True)
    head = torch.nn.Linear(UNITS, CLASSES)
    with torch.no_grad():
        for one in layer.parameters():
            one.copy_(torch.randn_like(one) * (0.9 if one.ndim == 2 else 0.5))
        head.weight.copy_(torch.randn_like(head.weight))
    return layer, head


def _labelled(folder: Path, layer: Any, head: Any, seed: int, wrong: float = 0.03) -> None:
    """Sequences with what the network says of them, now and then something else."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, STEPS, INPUTS)).astype(np.float32)
    with torch.no_grad():
        out = head(layer(torch.tensor(x))[0][:, -1])
        head.bias -= out.mean(dim=0)
        y = head(layer(torch.tensor(x))[0][:, -1]).argmax(dim=1).numpy()
    noise = rng.random(ROWS) < wrong
    y[noise] = rng.integers(0, CLASSES, int(noise.sum()))
    np.savez(folder / "val.npz", x=x, y=y)


def _blocks(values: Array, order: tuple[int, ...]) -> Array:
    """Of the last axis, in this order."""
    parts = np.split(values, len(order), axis=-1)
    return np.concatenate([parts[i] for i in order], axis=-1)


def _as_keras(folder: Path, layer: Any, head: Any, order: tuple[int, ...]) -> Path:
    h5py = pytest.importorskip("h5py")
    state = {k: v.numpy() for k, v in layer.state_dict().items()}
    biases = np.stack([state["bias_ih_l0"], state["bias_hh_l0"]])
    cell = [state["weight_ih_l0"].T, state["weight_hh_l0"].T, biases if len(order) == 3 else biases.sum(axis=0)]
    with h5py.File(folder / "model.weights.h5", "w") as file:
        for i, values in enumerate(cell):
            file[f"layers/rnn/cell/vars/{i}"] = _blocks(values, order)
        file["layers/dense/vars/0"] = head.weight.detach().numpy().T
        file["layers/dense/vars/1"] = head.bias.detach().numpy()
    return folder / "model.weights.h5"


def _as_torch(folder: Path, layer: Any, head: Any, order: tuple[int, ...]) -> Path:
    state = {f"rnn.{k}": torch.tensor(_blocks(v.numpy().T, order).T.copy()) for k, v in layer.state_dict().items()}
    torch.save({**state, **{f"head.{k}": v for k, v in head.state_dict().items()}}, folder / "model.pt")
    return folder / "model.pt"


def _found(path: Path) -> list[Any]:
    seen = examine(path)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == "W157"]


FORMS = [(_as_keras, "GRU", (1, 0, 2), (0, 1, 2)), (_as_torch, "GRU", (0, 1, 2), (1, 0, 2)),
         (_as_keras, "LSTM", (0, 1, 2, 3), (0, 1, 3, 2)), (_as_torch, "LSTM", (0, 1, 2, 3), (0, 2, 1, 3))]
"""How the library keeps the gates of torch, and another order."""


@pytest.mark.parametrize(("form", "kind", "own", "other"), FORMS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_gates_in_another_order_are_named(form: Any, kind: str, own: tuple[int, ...], other: tuple[int, ...], seed: int,
                                          tmp_path: Path) -> None:
    layer, head = _network(kind, seed)
    _labelled(tmp_path, layer, head, seed)
    (found,) = _found(form(tmp_path, layer, head, other))
    assert float(found.measured["best"]) > 0.95
    assert float(found.measured["stored"]) < 0.8
    assert _found(form(tmp_path, layer, head, own)) == []


@pytest.mark.parametrize(("form", "kind", "own", "other"), FORMS)
def test_labels_that_no_order_names_are_quiet(form: Any, kind: str, own: tuple[int, ...], other: tuple[int, ...],
                                              tmp_path: Path) -> None:
    """Sequences that the code would standardise first, and labels of another task."""
    layer, head = _network(kind, 0)
    _labelled(tmp_path, layer, head, 0, wrong=1.0)
    assert _found(form(tmp_path, layer, head, other)) == []


@pytest.mark.parametrize("wrong", [0.3, 0.6])
def test_a_network_that_is_often_wrong_is_quiet(wrong: float, tmp_path: Path) -> None:
    for seed in range(3):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        layer, head = _network("GRU", seed)
        _labelled(folder, layer, head, seed, wrong)
        assert _found(_as_keras(folder, layer, head, (1, 0, 2))) == []


def test_values_that_are_none_and_other_shapes_are_read(tmp_path: Path) -> None:
    layer, head = _network("GRU", 0)
    _labelled(tmp_path, layer, head, 0)
    with torch.no_grad():
        layer.weight_hh_l0[3, 2] = float("nan")
    assert _found(_as_torch(tmp_path, layer, head, (1, 0, 2))) == []
    torch.save({"rnn.weight_ih_l0": torch.randn(60, 5), "rnn.weight_hh_l0": torch.randn(60, 20),
                "rnn.bias_ih_l0": torch.randn(60), "head.weight": torch.randn(4, 19), "head.bias": torch.randn(4)},
               tmp_path / "other.pt")
    assert _found(tmp_path / "other.pt") == []
    (tmp_path / "val.npz").write_bytes(b"PK\x03\x04")
    assert _found(tmp_path / "model.pt") == []
