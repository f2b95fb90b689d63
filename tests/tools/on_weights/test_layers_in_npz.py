"""Matrices and biases in turn are a model, whatever their names; tables are data."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_data import examination
from traindx_tools.on_weights import is_weights
from traindx_tools.on_weights.npz_shapes import are_layers, holds_layers


@pytest.mark.parametrize(("shapes", "layers"), [
    ([(31, 32), (32,), (32, 16), (16,), (16, 1), (1,)], True),
    ([(32,), (31, 32), (16,), (32, 16), (1,), (16, 1)], True),  # the bias first, as a tree of JAX is flattened
    ([(32, 31), (32,), (16, 32), (16,)], True),  # torch
    ([(500, 4), (500,), (500, 4), (500,)], False),  # inputs and targets of two splits
    ([(500, 4), (500,), (80, 4), (80,)], False),
    ([(500, 4), (4,), (80, 4), (4,)], False),  # rows beside their means
    ([(31, 32), (32,)], False), ([(31, 32), (32,), (32, 16)], False), ([], False), ([(3,), (3,), (4,), (4,)], False),
])
def test_shapes(shapes: list[tuple[int, ...]], layers: bool) -> None:
    assert are_layers(shapes) is layers


def test_a_model_among_data_is_no_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mlp.npz", *(rng.normal(size=s).astype(np.float32) for s in (
        (32,), (31, 32), (16,), (32, 16), (1,), (16, 1))))
    np.savez(tmp_path / "train.npz", x=rng.normal(size=(200, 6)), y=rng.integers(0, 3, 200))
    assert is_weights(str(tmp_path / "mlp.npz"))
    assert not is_weights(str(tmp_path / "train.npz"))
    report = examination.examine([tmp_path])
    assert [f for f in report.findings if "mlp.npz" in f.statement] == []
    assert any(a.path.endswith("mlp.npz") and "weights" in a.note for a in report.artifacts)


def test_an_archive_of_whole_numbers_or_that_is_damaged_is_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "ids.npz", *(np.zeros(s, int) for s in ((31, 32), (32,), (32, 16), (16,))))
    with zipfile.ZipFile(tmp_path / "ids.npz") as archive:
        assert not holds_layers(archive)
    with zipfile.ZipFile(tmp_path / "odd.npz", "w") as archive:
        for n in range(4):
            archive.writestr(f"a{n}.npy", b"nothing of the kind")
    with zipfile.ZipFile(tmp_path / "odd.npz") as archive:
        assert not holds_layers(archive)
