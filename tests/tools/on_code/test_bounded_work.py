"""Whatever a file makes of shared objects and calls, an audit of it ends soon and says what it left out."""

from __future__ import annotations

from typing import Any

import pytest

from traindx_tools.code_audit.entry import AuditResult, audit_texts
from traindx_tools.code_reports.unified_diff import proposed
from traindx_tools.source_files.texts import Text

LOOP = """import torch, torch.nn as nn
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters(), 1e-3)
def train(loader):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x).softmax(-1), y)
        loss.backward()
        opt.step()
"""


def _audited(source: str) -> AuditResult:
    return audit_texts([Text("train.py", source + LOOP, "")])


def _doubled(first: str, line: str, levels: int = 40) -> str:
    rows = "".join(line.replace("NEW", f"m{i + 1}").replace("OLD", f"m{i}") + "\n" for i in range(levels))
    return f"import torch\nimport torch.nn as nn\nm0 = {first}\n{rows}"


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("nn.Linear(1, 1)", "NEW = nn.Sequential(OLD, OLD)"),
        ("nn.Linear(1, 1)", "NEW = nn.ModuleList([OLD, OLD])"),
        ("{'a': 1}", "NEW = {'x': OLD, 'y': OLD}"),
        ("(1, 2)", "NEW = (OLD, OLD)"),
        ("[1]", "NEW = []\nNEW.append(OLD)\nNEW.append(OLD)"),
        ("{}", "NEW = {}\nNEW['a'] = OLD\nNEW['b'] = OLD"),
    ],
)
def test_doubled_containers_are_cut_and_told(first: str, line: str) -> None:
    result = _audited(_doubled(first, line) + "y = m40(torch.zeros(1, 1))\ny.sum().backward()\n")
    assert any("left out" in n.note for n in result.notes)
    assert {f.rule for f in result.findings} >= {"C101", "C102"}


def test_a_model_of_usual_size_is_followed_whole() -> None:
    result = _audited(_doubled("nn.Linear(8, 8)", "NEW = nn.Sequential(OLD, OLD)", 5) + "y = m5(torch.zeros(1, 8))\n")
    assert not result.notes
    assert sum(e.name == "torch.nn.Linear.__call__" for p in result.projects for e in p.events) >= 32


def test_calls_of_calls_end(within: Any) -> None:
    levels = "".join(f"def f{i + 1}(x):\n    f{i}(x); f{i}(x); f{i}(x); f{i}(x)\n" for i in range(40))
    with within(10):
        result = _audited(f"import torch\ndef f0(x): pass\n{levels}f40(torch.zeros(1))\n")
    assert {f.rule for f in result.findings} >= {"C101", "C102"}


def test_a_long_inheritance_is_looked_through_in_part() -> None:
    classes = "".join(
        f"class C{i}({f'C{i - 1}' if i else 'nn.Module'}):\n"
        f"    def __init__(self): super().__init__(); self.a{i} = nn.Linear(1, 1)\n"
        f"    def forward(self, x): return self.a{i}(super().forward(x))\n"
        for i in range(150)
    )
    result = _audited(f"import torch.nn as nn\n{classes}")
    assert any("base classes beyond 50" in n.note for n in result.notes)


def test_a_dict_of_thousands_of_tensors_is_followed_in_part() -> None:
    entries = ",".join(f"'k{i}': torch.zeros({i})" for i in range(3000))
    result = _audited(f"import torch\nD = {{{entries}}}\n")
    assert any("a dict's entries after the first 1,000" in n.note for n in result.notes)
    assert sum(e.name == "torch.zeros" for p in result.projects for e in p.events) == 1000


@pytest.mark.parametrize(("ending", "given"), [("\n", True), ("\r\n", True), ("\r", False)])
def test_no_diff_for_lines_that_end_in_a_carriage_return(ending: str, given: bool) -> None:
    text = Text("train.py", LOOP.replace("\n", ending), "")
    made = proposed(audit_texts([text]).findings, {"train.py": text})
    assert bool(made.diff) is given
    assert bool(made.used) is given
    assert given or made.left_out
