"""Networks that were trained on rows beside them, with one part changed: told by computing them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.forward import ACTIVATIONS
from traindx_tools.on_weights.labelled_rows import rows_beside
from traindx_tools.on_weights.rules.w153_recomputed import score

torch = pytest.importorskip("torch")
nn = torch.nn
Arrays = dict[str, Any]
COLUMNS, CLASSES, HIDDEN = 8, 5, 32
_CHOSEN = {"relu": nn.ReLU, "silu": nn.SiLU, "tanh": nn.Tanh}


def _rows(seed: int, rows: int = 1200) -> tuple[Any, Any]:
    """Columns of unlike scales, and the class that a random network gives."""
    torch.manual_seed(1)
    teacher = nn.Sequential(nn.Linear(COLUMNS, 24), nn.Tanh(), nn.Linear(24, CLASSES))
    x = torch.randn(rows, COLUMNS, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return x, (teacher(x) * 4 - teacher(x).mean(0) * 4).argmax(1)


def _trained(norm: bool, activation: str = "relu", classes: bool = True) -> Arrays:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    parts: list[Any] = []
    for at in range(2):
        parts += [nn.Linear(HIDDEN if at else COLUMNS, HIDDEN), *([nn.BatchNorm1d(HIDDEN)] * norm),
                  _CHOSEN[activation]()]
    model = nn.Sequential(*[m if not isinstance(m, nn.BatchNorm1d) else nn.BatchNorm1d(HIDDEN) for m in parts],
                          nn.Linear(HIDDEN, CLASSES if classes else 1))
    x, y = _rows(0)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(500):
        some = torch.randint(0, len(x), (128,))
        out = model(x[some])
        loss = nn.functional.cross_entropy(out, y[some]) if classes else nn.functional.mse_loss(
            out[:, 0], x[some].sin().sum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {n: t.detach().numpy().copy() for n, t in model.state_dict().items()}


@pytest.fixture(scope="module")
def normed() -> Arrays:
    return _trained(True)


@pytest.fixture(scope="module")
def plain() -> Arrays:
    return _trained(False)


def _laid(folder: Path, arrays: Arrays, scale: float = 1.0, classes: bool = True, form: str = "torch") -> Path:
    x, y = _rows(7)
    labels = y.numpy().astype(np.int64) if classes else x.sin().sum(1).numpy()
    np.savez(folder / "valid.npz", x=x.numpy() * np.float32(scale), y=labels)
    (folder / "run").mkdir(exist_ok=True)
    return planted.write(form, folder / "run", arrays)


def _told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not [n for n in report.notes if "W153" in n]
    return [f for f in report.findings if f.rule == "W153" and f.severity is not Severity.INFO]


def _closed(arrays: Arrays, units: int, layer: str = "2") -> Arrays:
    bias = arrays[f"{layer}.bias"].copy()
    bias[:units] = -40
    return {**arrays, f"{layer}.bias": bias}


@pytest.mark.parametrize("form", ["torch", "safetensors", "npz"])
@pytest.mark.parametrize("layer", ["0", "2"])
def test_units_that_no_row_opens(plain: Arrays, layer: str, form: str, tmp_path: Path) -> None:
    """Few units are enough for this network: its outputs still go with the labels."""
    weakest = np.argsort(np.abs(plain["2.weight" if layer == "0" else "4.weight"]).sum(0))
    arrays = {n: v.copy() for n, v in plain.items()}
    arrays[f"{layer}.bias"][weakest[:20]] = -40
    (found,) = _told(_laid(tmp_path, arrays, form=form))
    assert (found.measured["kind"], found.measured["units"]) == ("dead", 20)
    assert "valid.npz" in found.statement


def _of_another(arrays: Arrays, norms: tuple[str, ...] = ("1", "4")) -> Arrays:
    rng = np.random.default_rng(0)
    made = {n: v.copy() for n, v in arrays.items()}
    for norm in norms:
        made[f"{norm}.running_mean"] = (rng.standard_normal(HIDDEN) * 4).astype("<f4")
        made[f"{norm}.running_var"] = rng.lognormal(0, 1.5, HIDDEN).astype("<f4")
    return made


@pytest.mark.parametrize("norms", [("1",), ("4",), ("1", "4")])
def test_statistics_of_another_network(normed: Arrays, norms: tuple[str, ...], tmp_path: Path) -> None:
    (found,) = _told(_laid(tmp_path, _of_another(normed, norms)))
    assert (found.measured["kind"], found.measured["layers"]) == ("statistics", len(norms))
    assert found.measured["name"] == norms[0]


def test_outputs_in_another_order(plain: Arrays, tmp_path: Path) -> None:
    order = [2, 0, 1, 4, 3]
    arrays = plain | {n: plain[n][order] for n in ("4.weight", "4.bias")}
    (found,) = _told(_laid(tmp_path, arrays))
    assert (found.measured["kind"], found.measured["moved"]) == ("classes", 5)
    assert "0 in output 1" in found.statement


def _networks() -> list[Any]:
    """Each activation with a norm before classes, one of them in all ways; the others are slow."""
    return [pytest.param(c, n, a, marks=[] if a == "relu" or (c and n) else pytest.mark.slow)
            for c in (False, True) for n in (False, True) for a in sorted(_CHOSEN)]


@pytest.mark.parametrize(("classes", "norm", "activation"), _networks())
def test_sound_networks(classes: bool, norm: bool, activation: str, tmp_path: Path) -> None:
    assert _told(_laid(tmp_path, _trained(norm, activation, classes), classes=classes)) == []


def _scaled_in_code(normed: Arrays, folder: Path) -> Path:
    """The code divides its inputs first."""
    return _laid(folder, normed, scale=50.0)


def _a_few(_: Arrays, folder: Path) -> Path:
    path = _laid(folder, _of_another(_))
    x, y = _rows(7, 90)
    np.savez(folder / "valid.npz", x=x.numpy(), y=y.numpy())
    return path


def _young(normed: Arrays, folder: Path) -> Path:
    _laid(folder, normed)
    return planted.write_torch(folder / "run" / "weights.pt", _of_another(normed), step=40)


def _no_labels(normed: Arrays, folder: Path) -> Path:
    path = _laid(folder, _of_another(normed))
    np.savez(folder / "valid.npz", x=_rows(7)[0].numpy())
    return path


def _another_task(normed: Arrays, folder: Path) -> Path:
    path = _laid(folder, normed)
    x, y = _rows(7)
    np.savez(folder / "valid.npz", x=x.numpy(), y=np.random.default_rng(0).permutation(y.numpy()))
    return path


@pytest.mark.parametrize("made", [_scaled_in_code, _a_few, _young, _no_labels, _another_task])
def test_what_cannot_be_told(normed: Arrays, made: Callable[[Arrays, Path], Path], tmp_path: Path) -> None:
    assert _told(made(normed, tmp_path)) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_and_weights_that_are_no_numbers(normed: Arrays, value: float, tmp_path: Path) -> None:
    path = _laid(tmp_path, _of_another(normed))
    x, y = (t.numpy() for t in _rows(7))
    x[3, 1] = value
    np.savez(tmp_path / "valid.npz", x=x, y=y)
    assert _told(path) == []
    bad = {n: v.copy() for n, v in normed.items()}
    bad["0.weight"][0, 0] = value
    assert _told(_laid(tmp_path, bad)) == []
    (tmp_path / "valid.npz").write_bytes(b"PK\x03\x04 no archive")
    assert _told(path) == []


def test_columns_by_a_list_beside_them(plain: Arrays, tmp_path: Path) -> None:
    x, y = (t.numpy() for t in _rows(7))
    names = [f"c{i}" for i in range(COLUMNS)]
    lines = [",".join(["label", *names[::-1]])]
    lines += [",".join([str(int(k)), *(f"{v:.5f}" for v in row[::-1])]) for k, row in zip(y, x, strict=True)]
    (tmp_path / "valid.csv").write_text("\n".join(lines))
    (tmp_path / "config.json").write_text(json.dumps({"features": names}))
    path = planted.write("torch", tmp_path, _closed(plain, 20, "0"))
    tables = list(rows_beside(str(path), COLUMNS))
    assert any(np.allclose(t.inputs, x, atol=1e-4) and "label" in t.labels for t in tables)


def test_scores() -> None:
    out = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    label = np.array([[0.0], [1], [2], [0], [1], [2]])
    assert score(out, label) == 1.0
    assert score(out[:, [1, 2, 0]], label) < 0
    assert score(out[:, [1, 2, 0]], label, any_order=True) == 1.0
    assert score(out, label + 7) == 0.0
    assert score(label, 2 * label + 3) == pytest.approx(1.0)
    assert score(np.zeros((6, 1)), label) == 0.0
    assert all(f(np.zeros(1))[0] == 0.0 for f in ACTIVATIONS.values())
