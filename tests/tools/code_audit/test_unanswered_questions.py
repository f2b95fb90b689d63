"""A question to a program that cannot be answered costs its own answer, and is told."""

from __future__ import annotations

import pytest

from traindx_tools.code_audit import audit_sources
from traindx_tools.on_code.filling import program_of as filling
from traindx_tools.on_code.source import Source, SourceFile, parse_source

NEVER_CLEARED = """
import torch
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in batches:
    loss = torch.nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
"""
OF_A_PARAMETER = """
class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Parameter(torch.zeros(4))
    def forward(self, x):
        return x @ self.mix.softmax(0) + self.mix.log_softmax(dim=-1).sum()
print(Pooled()(torch.ones(2, 4)))
"""


def source(text: str) -> Source:
    parsed = parse_source("train.py", text)
    assert isinstance(parsed, SourceFile)
    return parsed


def test_one_that_fails_leaves_the_others_and_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(of: object) -> list[object]:
        raise KeyError("Parameter")

    asks = tuple((name, broken if name == "axis_uses" else ask) for name, ask in filling._WITH_MORE)
    monkeypatch.setattr(filling, "_WITH_MORE", asks)
    result = audit_sources([source(NEVER_CLEARED)])
    assert [f.rule for f in result.findings if f.severity.rank > 1] == ["C101"]
    noted = [(n.path, n.format, n.note) for n in result.notes]
    assert noted == [("axis_uses", "rule", "stopped: KeyError: 'Parameter'")]


@pytest.mark.parametrize("text", [NEVER_CLEARED, NEVER_CLEARED + OF_A_PARAMETER])
def test_a_parameter_that_is_normalised_is_no_defect(text: str) -> None:
    result = audit_sources([source(text)])
    assert [f.rule for f in result.findings if f.severity.rank > 1] == ["C101"]
    assert result.notes == ()
