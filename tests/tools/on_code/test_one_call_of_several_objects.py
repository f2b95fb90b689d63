"""A line that two objects of one class run is one line: it is patched once."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.code_audit import audit

CODE = '''import torch
from torch import nn


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)

    def forward(self, x):
        p = torch.softmax(self.gate(x) * 8.0, dim=-1)
        self.entropy = -(p * p.log()).sum(-1).mean()
        return p


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Router(), Router()

    def forward(self, x):
        return self.a(x) + self.b(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    y = net(torch.randn(16, 8))
    loss = y.pow(2).mean() + net.a.entropy + net.b.entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
'''


def test_the_guard_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    found = audit([tmp_path], rules=["C107"]).findings
    assert [len(f.patch) for f in found] == [1]
    assert found[0].patch[0].replacement.count("clamp_min") == 1
