"""Beside a run that works: data files by their statistics, notebooks by their cells, nothing that a run measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.against import compare
from traindx_tools.against.code import code_differences
from traindx_tools.against.data import data_differences
from traindx_tools.against.families import family_of
from traindx_tools.against.settings import setting_differences
from traindx_tools.examine import examine

PREPARE = "import numpy as np\nnp.savez('train.npz', x=x[a] / 16.0)\nnp.savez('val.npz', x=x[b] / 16.0)"
TRAIN = "train = np.load('train.npz')\nval = np.load('val.npz')\nfor epoch in range(12):\n    print(epoch)"


def notebook(path: Path, *cells: str) -> Path:
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": c} for c in cells], "nbformat": 4,
                                "metadata": {}}))
    return path


def files(folder: Path, name: str, scale: float, prepare: str, seed: int = 0, rows: int = 400) -> Path:
    folder.mkdir()
    random = np.random.default_rng(seed)
    np.savez(folder / "train.npz", x=random.uniform(0, 1, (1400, 16)))
    np.savez(folder / "val.npz", x=random.uniform(0, scale, (rows, 16)))
    notebook(folder / name, prepare, TRAIN)
    (folder / "log.csv").write_text("epoch,train_loss\n" + "".join(f"{k},{1 / (k + 1)}\n" for k in range(12)))
    return folder


@pytest.mark.slow
def test_a_file_of_another_scale_and_the_cell_that_made_it(tmp_path: Path) -> None:
    bad = files(tmp_path / "bad", "scale.ipynb", 16.0, PREPARE.replace("x[b] / 16.0", "x[b]"))
    good = files(tmp_path / "good", "good.ipynb", 1.0, PREPARE)
    found = compare(examine([bad], root=bad), examine([good], root=good))
    assert [(d.file, d.field) for d in found.data] == [("val.npz", "x")]
    assert found.data[0].factor == pytest.approx(16, rel=0.05)
    assert found.ranked[0].kind == "data"
    assert found.ranked[0].undo == "take val.npz from the working run"
    assert [c.statement() for c in found.code] == ["scale.ipynb: differs in the top level (cell 1)"]
    assert found.code[0].at(found.code[0].lines[0]) == "scale.ipynb:cell 1:3"
    json.dumps(found.to_json())


@pytest.mark.slow
def test_two_samples_of_one_origin_do_not_differ(tmp_path: Path) -> None:
    one = files(tmp_path / "one", "a.ipynb", 1.0, PREPARE, 0)
    two = files(tmp_path / "two", "a.ipynb", 1.0, PREPARE, 1)
    found = compare(examine([one], root=one), examine([two], root=two))
    assert found.data == ()
    assert found.code == ()


def test_forms_rows_and_fields_are_told_and_broken_files_are_not_compared(tmp_path: Path) -> None:
    def saved(name: str, **arrays: Any) -> Path:
        np.savez(tmp_path / f"{name}.npz", **arrays)
        return tmp_path / f"{name}.npz"

    whole = np.arange(300, dtype=np.float32).reshape(100, 3) % 7
    first = saved("a", x=whole, y=np.zeros(100))
    cases = {"dtype": saved("b", x=whole.astype(np.float64), y=np.zeros(100)),
             "shape": saved("c", x=whole[:, :2], y=np.zeros(100)), "rows": saved("d", x=whole[:50], y=np.zeros(50)),
             "field": saved("e", x=whole, z=np.zeros(100)), "level": saved("f", x=whole + 9, y=np.zeros(100))}
    told = {k: [d.statement() for d in data_differences({"f": first}, {"f": p})] for k, p in cases.items()}
    assert told["dtype"] == ["x of f: float32 here, float64 there"]
    assert "rows of shape (3,) here, (2,) there" in told["shape"][0]
    assert "x of f: 100 rows here, 50 there" in told["rows"]
    assert told["field"] == ["f: holds y in the broken run alone; holds z in the working run alone"]
    assert "mean 2.99" in told["level"][0]
    broken = tmp_path / "g.npz"
    broken.write_bytes(first.read_bytes()[:200])
    assert data_differences({"f": first}, {"f": broken}) == []
    assert data_differences({"f": first}, {"f": tmp_path / "none.npz"}) == []
    assert data_differences({"f": first}, {"f": first}) == []


def test_notebooks_of_other_names_are_paired_by_what_they_hold(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    mine = [notebook(tmp_path / "here" / "a.ipynb", PREPARE, TRAIN),
            notebook(tmp_path / "here" / "other.ipynb", "print('nothing of it')")]
    theirs = [notebook(tmp_path / "there" / "b.ipynb", PREPARE, TRAIN)]
    assert [d.statement() for d in code_differences(mine, theirs)] == ["other.ipynb: only the broken run has this file"]


@pytest.mark.parametrize(("key", "here", "there", "told"), [
    ("cwd", "/a", "/b", False), ("pid", "12", "13", False), ("last.data_time", "0.015", "0.0009", False),
    ("last.loss", "2.1", "0.3", False), ("grad_norm", "1", "2", False), ("loss", "mse", "nll", True),
    ("weights.kl", "0.1", "0.2", True), ("optim.lr", "0.1", "0.2", True), ("timeout", "3", "4", True),
    ("memory_size", "100", "200", True),
])
def test_what_a_run_measured_of_itself_is_no_setting(key: str, here: str, there: str, told: bool) -> None:
    assert bool(setting_differences({key: here}, {key: there})) is told


def test_cwd_is_no_weight_decay() -> None:
    assert [family_of(n).name for n in ("wd", "adapter_wd", "l2", "weight_decay")] == ["regularisation"] * 4
    assert [family_of(n).name for n in ("cwd", "pwd", "fwd")] == ["other"] * 3
