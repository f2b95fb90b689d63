"""What the code divides a row of a matrix by, and rows in which that is 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.code_poles import at_poles
from traindx_tools.on_data.examination import examine

SPARSE = ("import numpy as np, pandas as pd, scipy.sparse as sp\n"
          "C = sp.load_npz('counts.npz').toarray(); g = pd.read_csv('genes.csv')\n"
          "spike = (g.kind == 'spike').values\ns = C[:, spike].sum(1, keepdims=True)\n{}X = C[:, ~spike] / s\n")
ARRAY = "import numpy as np\nz = np.load('x.npz')\nx = z['x']\nu = x / np.linalg.norm(x, axis=1)[:, None]\n"


def said(folder: Path, code: str, zero: bool = True) -> list[Finding]:
    counts = np.random.default_rng(0).integers(1, 9, (60, 12))
    counts[[7, 31], 8:] = 0 if zero else 1
    row, column = np.nonzero(counts)
    np.savez(folder / "counts.npz", indices=column.astype(np.int32), data=counts[row, column], format=b"csr",
             indptr=np.concatenate([[0], np.cumsum((counts > 0).sum(1))]).astype(np.int32), shape=np.array([60, 12]))
    lines = [f"g{k},{'spike' if k > 7 else 'own'}" for k in range(12)]
    (folder / "genes.csv").write_text("\n".join(["gene,kind", *lines]))
    vectors = np.random.default_rng(1).normal(size=(60, 5))
    vectors[7] = 0.0 if zero else 1.0
    np.savez(folder / "x.npz", x=vectors, y=np.arange(60) % 2)
    (folder / "train.py").write_text(code)
    return list(at_poles(examine([folder]).sets, [folder / "train.py"]))


@pytest.mark.parametrize(("code", "rows"), [(SPARSE.format(""), (7, 31)), (ARRAY, (7,))], ids=["sparse", "array"])
def test_rows_whose_divisor_is_zero(code: str, rows: tuple[int, ...], tmp_path: Path) -> None:
    (found,) = said(tmp_path, code)
    assert (found.rule, found.measured["rows"], found.measured["kind"]) == ("D175", rows, "division")


@pytest.mark.parametrize("code", [
    SPARSE.format("s[s == 0] = 1\n"), SPARSE.format("s = np.maximum(s, 1)\n"),
    SPARSE.replace("/ s", "/ (s + 1)").format(""),
    SPARSE.format("").replace("kind ==", "missing ==")], ids=["compared", "bounded", "added", "unknown"])
def test_divisors_that_the_code_heeds_or_that_are_not_understood(code: str, tmp_path: Path) -> None:
    assert said(tmp_path, code) == []


SPREADS = {
    "std": "u = x / x.std(1, keepdims=True)", "centred": "u = (x - x.mean(1, keepdims=True)) / x.std(axis=1)[:, None]",
    "range": "u = x / (x.max(1) - x.min(1))[:, None]",
}


@pytest.mark.parametrize("code", SPREADS.values(), ids=SPREADS)
def test_a_row_of_one_value_in_one_of_several_files_is_divided_by_its_spread(code: str, tmp_path: Path) -> None:
    every = np.random.default_rng(1).normal(0.4, 0.1, (3, 90, 7)).astype(np.float32)
    every[1, [4, 60]] = [[0.731], [0.333]]
    for number, rows in enumerate(every):
        np.savez(tmp_path / f"part_{number}.npz", x=rows, y=np.arange(90) % 2)
    text = f"import numpy as np\ndef load(p):\n    z = np.load(p)\n    x, y = z['x'], z['y']\n    {code}\n"
    (tmp_path / "train.py").write_text(text)
    seen = list(at_poles(examine([tmp_path]).sets, [tmp_path / "train.py"]))
    assert [(f.rule, f.measured["rows"], f.measured["shard"]) for f in seen] == [("D175", (4, 60), "part_1.npz")]
    (tmp_path / "train.py").write_text(text.replace("u = x / ", "u = x / (1e-6 + ").replace(
        "keepdims=True)) / ", "keepdims=True)) / (1e-6 + ") + ")")
    assert list(at_poles(examine([tmp_path]).sets, [tmp_path / "train.py"])) == []


def test_rows_that_all_hold_something_and_code_that_does_not_parse(tmp_path: Path) -> None:
    assert said(tmp_path, SPARSE.format(""), zero=False) == said(tmp_path, "x = (") == []
