"""D199: layers of a checkpoint whose means and variances are those of other data than the data beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d199_statistics_of_other_data as d199

Seen = Callable[[ModuleType, Path], list[Finding]]
Array = np.ndarray[Any, Any]
NAMES = ["speed", "age", "weight", "angle", "load", "drift"]
MEANS, SPREADS = np.array([30.0, 4, 900, -2, 0.5, 120]), np.array([5.0, 2, 80, 0.3, 0.1, 33])
MOVED = np.array([0.9, -1.4, 2.0, 1.1, 0.2, -0.8])
"""Standard deviations by which the means of the other set differ."""


def csv(folder: Path, name: str = "train.csv", rows: int = 600) -> Array:
    x = MEANS + SPREADS * np.random.default_rng(0).normal(size=(rows, 6))
    lines = [",".join(f"{v:.4f}" for v in row) + f",{int(row[0] > 30)}" for row in x]
    (folder / name).write_text("\n".join([",".join([*NAMES, "broken"]), *lines]))
    return x


def sequences(folder: Path, name: str = "train.npz") -> Array:
    x = MEANS + SPREADS * np.random.default_rng(0).normal(size=(600, 20, 6))
    np.savez(folder / name, x=x.astype(np.float32), y=np.arange(600) % 3)
    return x.reshape(-1, 6)


def keras(folder: Path, mean: Array, spread: Array) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "model.weights.h5", "w") as file:
        for layer, held in (("normalization", [mean, spread**2, np.int32(0)]),
                            ("dense", [np.ones((6, 8), np.float32), np.zeros(8, np.float32)])):
            for i, value in enumerate(held):
                file.create_dataset(f"layers/{layer}/vars/{i}", data=np.asarray(value))


def torch_file(folder: Path, mean: Array, spread: Array) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"model": {"net.0.weight": torch.randn(8, 6), "net.0.bias": torch.zeros(8),
                          "bn_in.running_mean": torch.tensor(mean), "bn_in.running_var": torch.tensor(spread**2)}},
               folder / "model.pt")


def plain(folder: Path, mean: Array, spread: Array) -> None:
    (folder / "scaler.json").write_text(json.dumps(
        {"feature_names": NAMES, "mean": mean.tolist(), "std": spread.tolist()}))


@pytest.mark.parametrize("data", [csv, sequences])
@pytest.mark.parametrize("write", [keras, torch_file])
def test_statistics_of_another_site(write: Any, data: Any, tmp_path: Path, seen_by: Seen) -> None:
    x = data(tmp_path)
    write(tmp_path, x.mean(axis=0) + MOVED * SPREADS, x.std(axis=0) * 1.1)
    (told,) = seen_by(d199, tmp_path)
    assert (told.severity, told.measured["kind"], told.measured["far"]) == (Severity.HIGH, "other", 5)
    if data is csv:
        assert "load" not in told.measured["channels"]  # type: ignore[operator]


def test_a_file_of_them(tmp_path: Path, seen_by: Seen) -> None:
    x = csv(tmp_path)
    plain(tmp_path, x.mean(axis=0) + 1.5 * MOVED * SPREADS, x.std(axis=0) * 1.1)
    (told,) = seen_by(d199, tmp_path)
    assert (told.severity, told.measured["far"]) == (Severity.MEDIUM, 5)


@pytest.mark.parametrize(("k", "told"), [([2], 1), ([0, 4], 1)])
@pytest.mark.parametrize("write", [keras, torch_file])
def test_some_columns_of_a_layer(write: Any, k: list[int], told: int, tmp_path: Path, seen_by: Seen) -> None:
    x = csv(tmp_path)
    mean = x.mean(axis=0)
    mean[k] += 3 * SPREADS[k]
    write(tmp_path, mean, x.std(axis=0))
    (found,) = seen_by(d199, tmp_path)
    assert (found.measured["kind"], found.measured["channels"]) == ("part", tuple(NAMES[i] for i in k))


@pytest.mark.parametrize("write", [keras, torch_file, plain])
def test_sound_statistics(write: Any, tmp_path: Path, seen_by: Seen) -> None:
    x = csv(tmp_path)
    write(tmp_path, x.mean(axis=0), x.std(axis=0))
    assert seen_by(d199, tmp_path) == []
    write(tmp_path, x[:300].mean(axis=0), x[:300].std(axis=0))  # a part of the rows
    assert seen_by(d199, tmp_path) == []
    write(tmp_path, 0.7 * x.mean(axis=0), np.sqrt(0.7 * x.var(axis=0) + 0.3))  # averages that are on their way
    assert seen_by(d199, tmp_path) == []


@pytest.mark.parametrize("write", [keras, torch_file])
def test_hidden_layers_and_transformed_columns(write: Any, tmp_path: Path, seen_by: Seen) -> None:
    x = csv(tmp_path)
    rng = np.random.default_rng(3)
    write(tmp_path, rng.normal(size=6), rng.uniform(0.5, 2, 6))  # of six hidden channels
    assert seen_by(d199, tmp_path) == []
    logs = np.log1p(np.abs(x))
    write(tmp_path, logs.mean(axis=0), logs.std(axis=0))
    assert seen_by(d199, tmp_path) == []


@pytest.mark.parametrize("write", [keras, torch_file, plain])
def test_data_that_the_model_was_not_trained_on(write: Any, tmp_path: Path, seen_by: Seen) -> None:
    """A batch to be judged may differ by a standard deviation; statistics of no column are another matter."""
    x = csv(tmp_path, "valid.csv")
    write(tmp_path, x.mean(axis=0) + MOVED * SPREADS, x.std(axis=0))
    assert seen_by(d199, tmp_path) == []


@pytest.mark.parametrize("write", [keras, torch_file])
def test_statistics_that_are_no_numbers_and_few_rows(write: Any, tmp_path: Path, seen_by: Seen) -> None:
    x = csv(tmp_path)
    write(tmp_path, np.where(np.arange(6) == 2, np.nan, x.mean(axis=0)), x.std(axis=0))
    assert seen_by(d199, tmp_path) == []
    x = csv(tmp_path, rows=60)
    write(tmp_path, x.mean(axis=0) + 2 * SPREADS, x.std(axis=0))
    assert seen_by(d199, tmp_path) == []


@pytest.mark.parametrize("swapped", [False, True])
def test_a_layer_of_four_inputs(swapped: bool, tmp_path: Path, seen_by: Seen) -> None:
    """One of four was measured in another unit; two that were exchanged are told as such by D179."""
    h5py = pytest.importorskip("h5py")
    x = csv(tmp_path)[:, :4]
    lines = [",".join(f"{v:.4f}" for v in row) for row in x]
    (tmp_path / "train.csv").write_text("\n".join(["speed,age,weight,angle", *lines]))
    mean, spread = x.mean(axis=0), x.std(axis=0)
    if swapped:
        mean, spread = mean[[0, 3, 2, 1]], spread[[0, 3, 2, 1]]
    else:
        mean[0], spread[0] = mean[0] * 1.8 + 32, spread[0] * 1.8
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        for i, value in enumerate([mean, spread**2, np.int32(0)]):
            file.create_dataset(f"layers/normalization/vars/{i}", data=np.asarray(value))
    found = seen_by(d199, tmp_path)
    assert [f.measured["channels"] for f in found] == ([] if swapped else [("speed",)])


BANDS, WIDTHS = np.array([1200.0, 900, 700, 2600]), np.array([300.0, 250, 260, 800])


def tiles(folder: Path) -> None:
    """Pictures of four channels, in two files of training and one of validation."""
    rng = np.random.default_rng(3)
    for name, rows in (("train_0", 90), ("train_1", 90), ("val_0", 40)):
        x = BANDS + WIDTHS * rng.normal(size=(rows, 6, 6, 4))
        np.savez(folder / f"{name}.npz", x=x.astype(np.float32), y=rng.integers(0, 3, rows))


@pytest.mark.parametrize("write", [plain, torch_file])
def test_four_channels_of_another_sensor(write: Any, tmp_path: Path, seen_by: Seen,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NAMES", list("rgbn"))
    tiles(tmp_path)
    write(tmp_path, np.array([820.0, 560, 380, 1700]), np.array([210.0, 180, 170, 520]))
    (found,) = seen_by(d199, tmp_path)
    assert found.severity is Severity.MEDIUM
    assert found.measured["far"] == 4


@pytest.mark.parametrize(("mean", "spread"), [
    (BANDS, WIDTHS),
    (BANDS * 1.03, WIDTHS * 0.96),  # of a sample
    (BANDS / 10_000, WIDTHS / 10_000),  # of pixels that are scaled first
    (np.array([0.48, 0.46, 0.41, 0.5]), np.array([0.23, 0.22, 0.22, 0.25])),
    (np.array([820.0, 560, 380, 700]), np.array([210.0, 180, 170, 220])),  # one agrees with nothing
    (np.array([1500.0, 2700, 900, 300]), np.array([310.0, 700, 240, 120])),  # of other channels
])
def test_four_channels_as_they_may_be(mean: Array, spread: Array, tmp_path: Path, seen_by: Seen,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NAMES", list("rgbn"))
    tiles(tmp_path)
    plain(tmp_path, mean, spread)
    assert seen_by(d199, tmp_path) == []


FORMS = {"variances": lambda m, s: (m, s**2), "roots": lambda m, s: (m, s**0.5), "inverses": lambda m, s: (m, 1 / s),
         "negated": lambda m, s: (-m, s), "exchanged": lambda m, s: (s, np.abs(m))}


@pytest.mark.parametrize("form", list(FORMS))
def test_statistics_in_another_form(form: str, tmp_path: Path, seen_by: Seen) -> None:
    x = sequences(tmp_path)
    mean, spread = FORMS[form](x.mean(axis=0), x.std(axis=0))
    torch_file(tmp_path, mean, spread)
    found = [f for f in seen_by(d199, tmp_path) if f.measured["kind"] == "form"]
    assert [f.measured["form"] for f in found] == [form]
    assert found[0].severity is (Severity.MEDIUM if form in ("inverses", "negated") else Severity.HIGH)


def test_data_that_were_standardised_are_their_own_squares(tmp_path: Path, seen_by: Seen) -> None:
    x = np.random.default_rng(0).normal(size=(600, 20, 6))
    np.savez(tmp_path / "train.npz", x=x.astype(np.float32), y=np.arange(600) % 3)
    torch_file(tmp_path, np.zeros(6), np.ones(6))
    assert seen_by(d199, tmp_path) == []
