"""Every place of a notebook that a diagnosis names can be found in Jupyter: a cell and a line in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from traindx.diagnose import diagnose
from traindx.places import Places
from traindx_tools.finding import Location
from traindx_tools.on_data.named_lines import maker_of, named_lines
from traindx_tools.scope.cells import Notebooks

torch = pytest.importorskip("torch")

PREPARE = "import numpy as np\n\nnp.savez('train.npz', x=x[a] / 16.0, y=y[a])\nnp.savez('val.npz', x=x[b], y=y[b])"
LOAD = """import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
train, val = np.load('train.npz'), np.load('val.npz')
loader = DataLoader(TensorDataset(torch.tensor(train['x']), torch.tensor(train['y'])), batch_size=64, shuffle=True)"""
WRAPPED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 32), nn.Linear(32, 3)
    def forward(self, x):
        return self.head(self.body(x).relu())
torch.save(nn.DataParallel(Net()).state_dict(), 'pretrained.pt')"""
START = "model = Net()\nmodel.load_state_dict(torch.load('pretrained.pt'), strict=False)"


def notebook(path: Path, *cells: str) -> Path:
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": c} for c in cells], "nbformat": 4,
                                "metadata": {}}))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 2000)
    x = random.uniform(0, 1, (2000, 8)) + np.eye(3, 8)[y]
    np.savez(tmp_path / "train.npz", x=x[:1400], y=y[:1400])
    np.savez(tmp_path / "val.npz", x=16 * x[1400:], y=y[1400:])
    net = torch.nn.Sequential()
    net.body, net.head = torch.nn.Linear(8, 32), torch.nn.Linear(32, 3)
    torch.save({f"module.{k}": v for k, v in net.state_dict().items()}, tmp_path / "pretrained.pt")
    notebook(tmp_path / "fit.ipynb", "# read me", PREPARE, LOAD, WRAPPED, START)
    return tmp_path


def test_no_line_of_the_joined_cells_is_told(folder: Path) -> None:
    report = diagnose([folder], root=folder, symptom="validation accuracy stays low")
    found = {f.rule for f in report.seen.findings}
    assert {"D104", "W110"} <= found
    told = json.dumps(report.to_json()) + report.terminal({})
    assert re.findall(r"fit\.ipynb:\d+", told) == []
    assert "fit.ipynb:cell 2:4" in told
    assert "fit.ipynb:cell 5:2" in told


def test_a_fault_of_a_file_is_at_the_line_that_writes_it(folder: Path) -> None:
    code = (folder / "fit.ipynb",)
    places = Places(folder, code, files=named_lines(code, folder), books=Notebooks.read(code))
    made = places.maker(Location(file="val.npz"))
    assert made is not None
    assert places.told(*made) == "fit.ipynb:cell 2:4"
    assert places.maker(Location(file="other.npz")) is None
    assert places.maker(Location(module="x")) is None
    assert maker_of(folder / "pretrained.pt", ()) is None
    reads = [n for n in named_lines(code, folder) if not n.written]
    only_read = maker_of(folder / "val.npz", reads)
    assert only_read is not None
    assert places.told("fit.ipynb", only_read.line) == "fit.ipynb:cell 3:4"


def test_a_line_of_a_cell_and_what_it_printed(folder: Path) -> None:
    code = (folder / "fit.ipynb",)
    places = Places(folder, code, books=Notebooks.read(code))
    where = Location(file="fit.ipynb", line=2, cell=5)
    place = places.code_place(where)
    assert place is not None
    assert places.told(*place) == "fit.ipynb:cell 5:2"
    assert places.code_place(Location(file="fit.ipynb", line=2, cell=9)) is None
    assert places.code_place(Location(file="fit.ipynb", line=2, cell=5, printed=True)) is None
    assert places.told("train.py", 3) == "train.py:3"
