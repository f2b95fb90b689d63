"""A logarithm of zero, sqrt at zero in the backward pass and an attention row masked completely, in one layer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "planted"))

import torch
from finding_origins import origin_of, watched
from torch import Tensor, nn

from traindx_tools.live.settings import Settings


class Layer(nn.Module):
    """One line each; `fault` is the one that goes wrong in the fourth step."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.query, self.value, self.fault, self.step = nn.Linear(4, 4), nn.Linear(4, 4), fault, 0

    def forward(self, x: Tensor) -> Tensor:
        self.step += 1
        bad = self.fault if self.step == 4 else ""
        q, v = self.query(x), self.value(x)
        mask = torch.zeros(6, 6).masked_fill(torch.ones(6, 6).triu(0 if bad == "mask" else 1).bool(), float("-inf"))
        weights = torch.softmax(q @ q.T + mask, -1)  # <- mask
        length = torch.sqrt((v * (0.0 if bad == "sqrt" else 1.0)).pow(2).sum(-1))  # <- sqrt
        share = torch.log(torch.sigmoid(v) * (0.0 if bad == "log" else 1.0))  # <- log
        return weights @ share + length[:, None]


WANTED = {"log": ("log", "forward", "log-of-zero"), "sqrt": ("", "backward", "sqrt-at-zero"),
          "mask": ("_softmax", "forward", "masked-softmax-row")}


def training(fault: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), Layer(fault))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(6, 3)).pow(2).mean().backward()
        optimizer.step()


def line_of(fault: str) -> int:
    text = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(text, 1) if line.endswith(f"# <- {fault}"))


@pytest.mark.slow
@pytest.mark.parametrize("snapshot", [False, True], ids=["second-pass", "snapshot"])
@pytest.mark.parametrize("fault", WANTED)
def test_each_is_named_with_its_operation_line_and_module(fault: str, snapshot: bool, tmp_path: Path) -> None:
    if snapshot:
        seen = watched(lambda: training(fault), Settings(str(tmp_path), ("always", "snapshot")))
        found = next((f for f in seen if f.rule == "T101"), None)
    else:
        found = origin_of(lambda: training(fault), tmp_path)
    assert found is not None
    op, phase, reason = WANTED[fault]
    assert str(found.measured["op"]).startswith(op)
    assert (found.measured["phase"], found.measured["reason"]) == (phase, reason)
    assert (found.where.line, found.where.module) == (line_of(fault), "1")


def test_the_healthy_twin_is_left_alone(tmp_path: Path) -> None:
    seen = watched(lambda: training(""), Settings(str(tmp_path), ("always", "snapshot")))
    assert not [f for f in seen if f.rule.startswith("T1")]
