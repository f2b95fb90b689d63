"""What the model knows of axes, masks, signs and metrics, as `traindx try` prints it; and what it does not claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit.read import programs_of
from traindx_tools.program_texts.of_code import told

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

net = nn.Linear(4, 3)
optimizer = torch.optim.Adam(net.parameters())
for x, y in batches:
"""
STEP = "\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"


def lines(folder: Path, body: str) -> list[str]:
    (folder / "train.py").write_text(HEAD + "".join(f"    {line}\n" for line in body.split("\n")) + STEP)
    (program,), notes = programs_of([folder])
    assert not notes
    return told(program).splitlines()


@pytest.mark.parametrize(("body", "wanted"), [
    ("d = Categorical(logits=net(x))\nloss = -(d.log_prob(y) * x).mean() - 0.1 * d.entropy().mean()",
     "-chosen, -entropy"),
    ("d = Categorical(logits=net(x))\nh = -d.entropy()\nloss = h.mean() * 2 - d.log_prob(y).mean()",
     "-chosen, -entropy"),
    ("p = net(x).softmax(-1).mean(0)\nloss = (p * (p + 1e-8).log()).sum()", "-spread"),
    ("p = net(x).softmax(-1).mean(0)\nloss = 1 / torch.exp((p * p.log()).sum())", "+spread"),
    ("d = Categorical(logits=net(x))\nloss = d.entropy().mean() ** 2", "nothing known"),
    ("loss = -F.cross_entropy(net(x), y)", "negated"),
])
def test_signs_go_through_arithmetic_and_end_where_nothing_is_known(tmp_path: Path, body: str, wanted: str) -> None:
    (line,) = [one for one in lines(tmp_path, body) if one.startswith("objective")]
    assert wanted in line


@pytest.mark.parametrize(("mask", "wanted"), [
    ("y != 0", "true for content"), ("~(y != 0)", "true for blank"), ("torch.arange(3) < x", "true for content"),
    ("x <= torch.arange(3)", "true for blank"), ("y != 1", "unknown"), ("y > 3", "unknown"),
    ("torch.arange(3)[None] > torch.arange(3)[:, None]", "true for triangle"),
    ("torch.cat([torch.ones(1, dtype=torch.bool), y == 0])", "true for content"),
])
def test_where_a_mask_is_true(tmp_path: Path, mask: str, wanted: str) -> None:
    body = f"keep = {mask}\nscores = net(x).masked_fill(keep, -1e9)\nloss = F.nll_loss(scores.log_softmax(-1), y)"
    (line,) = [one for one in lines(tmp_path, body) if one.startswith("mask")]
    assert wanted in line


def test_what_stands_on_an_axis(tmp_path: Path) -> None:
    body = "a = net(x).softmax(-1)\nb = net(x).log_softmax(0)\nloss = F.nll_loss(b, y) + a.mean()"
    said = [one for one in lines(tmp_path, body) if "softmax" in one]
    assert any("over axis -1, features of 3" in one for one in said)
    assert any("over axis 0, unknown" in one or "over axis 0, batch" in one for one in said)
