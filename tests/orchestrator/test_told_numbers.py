"""Numbers and words that a person checks by hand: of two checkpoints, of data files, of fingerprints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx import cli
from traindx.model_names import model_named
from traindx_tools.errors import BadUsage


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    weights = {f"{n}.{k}": v.astype("float32") for n in ("body.0", "body.2", "head")
               for k, v in (("weight", rng.normal(size=(8, 8))), ("bias", rng.normal(size=8)))}
    np.savez("last.npz", **weights)
    np.savez("same.npz", **weights)
    np.savez("first.npz", **{k: v * 0 if v.ndim == 1 else v / 2 for k, v in weights.items()})
    for name, rows in (("train", 400), ("val", 97)):
        np.savez(f"{name}.npz", x=rng.random((rows, 8)).astype("float32"), y=rng.integers(0, 3, rows))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.run(words)
    told = capsys.readouterr()
    return code, told.out + told.err


def test_equal_files_are_called_equal_and_no_tensor_is_blamed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "weights", "last.npz", "same.npz")
    assert code == 1
    assert "no value differs between the two" in text
    assert "hold the same values, to the bit, in all 6 tensors" in text
    assert "module" not in text
    assert "most" not in text


def test_every_tensor_is_accounted_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = said(capsys, "weights", "first.npz", "last.npz")
    assert "6 tensors measured" in text
    assert "6 moved (3 of them from zero) and 0 did not" in text


def test_a_file_of_each_split_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = said(capsys, "data", "train.npz", "val.npz")
    assert "train.npz: 400 rows in 1 file (train), 97 rows in val.npz (validation)" in text


def test_weights_are_counted_in_a_fingerprint_whatever_holds_them(here: Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    _, text = said(capsys, "fingerprint", ".")
    assert "3 with weights" in text
    assert "last.npz: not read" not in text


def test_weights_given_as_data_name_the_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "data", "last.npz")
    assert code == 2
    assert "`traindx weights last.npz`" in text


@pytest.mark.parametrize(("spec", "to_do"), [("train.py:Net", "--model train:Net"),
                                             ("ckpt.ipynb:Net", "--model ckpt_model:Net")])
def test_a_file_in_place_of_a_module_is_told_what_to_do(spec: str, to_do: str, tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match=to_do):
        model_named(spec, tmp_path)
