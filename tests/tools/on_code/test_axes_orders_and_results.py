"""C236 beyond its fixtures: how sure it is, what its patches leave, several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.edits.patches import applied
from traindx_tools.finding import Finding

FIXTURES = Path(__file__).parent / "fixtures"
RULES = ("C236",)
BAD = [p for rule in RULES for p in sorted((FIXTURES / rule.lower()).glob("bad_*.py"))]


def found(folder: Path, rule: str, **sources: str) -> list[Finding]:
    for name, text in sources.items():
        (folder / f"{name}.py").write_text(text)
    return [f for f in audit([folder]).findings if f.rule == rule]


@pytest.mark.parametrize("path", BAD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_patches_remove_what_they_are_for(path: Path, tmp_path: Path) -> None:
    rule = path.parent.name.upper()
    before = [f for f in audit([path]).findings if f.rule == rule]
    text = path.read_text()
    patches = {p for f in before for p in f.patch}
    copy = tmp_path / path.name
    copy.write_text(applied(text, tuple(patches)))
    after = [f for f in audit([copy]).findings if f.rule == rule]
    assert len(after) == sum(not f.patch for f in before)


def test_target_first_is_seen_where_the_model_lies_in_another_file(tmp_path: Path) -> None:
    model = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(9, 1), nn.Sigmoid())
"""
    train = """
import torch
from torch.nn import functional as F
from model import build

def train(loader):
    scorer = build()
    optimizer = torch.optim.Adam(scorer.parameters())
    for x, bought in loader:
        loss = F.binary_cross_entropy(input=bought, target=scorer(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    (one,) = found(tmp_path, "C236", model=model, train=train)
    assert one.where.file is not None
    assert one.where.file.endswith("train.py")
    assert one.measured["given_as_input"] == "bought"


@pytest.mark.parametrize("text", [
    "import torch\nnn.ModuleList([])\ntorch.manual_seed()\nx.to()\n",
    "from torch import nn\nnn.ModuleList([*a] * n)\nnn.LSTM(*sizes)(x)[0][:, -1]\nF.cross_entropy()\n",
    "import torch\nfor x in y:\n    torch.manual_seed(*s)\n    x.backward()\nself.lr = optimizer.lr = 3\n",
    "import torch\nclass",
])  # fmt: skip
def test_odd_code_is_survived(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.py").write_text(text)
    assert not [f for f in audit([tmp_path]).findings if f.rule in RULES]
