"""Layers that a loop gathers and that are cut off at the end: the last one is what the cut leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit

PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F
def mlp(sizes):
    layers = []
    for i, o in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers{cut})
net = mlp([8, 24, 4])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(("cut", "rules"), [("", ["C242"]), ("[:-1]", []), ("[0:-1]", []), ("[1:]", ["C242"])])
def test_the_activation_after_the_last_layer(tmp_path: Path, cut: str, rules: list[str]) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("{cut}", cut))
    assert [f.rule for f in audit([tmp_path]).findings] == rules
