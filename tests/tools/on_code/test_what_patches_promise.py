"""A patch does what its summary says, and as much of it as the finding needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.edits.patches import applied
from traindx_tools.finding import Finding

FIXTURES = Path(__file__).parent / "fixtures"


def found(rule: str, name: str) -> list[Finding]:
    return [f for f in audit([FIXTURES / rule.lower() / f"{name}.py"]).findings if f.rule == rule]


def test_every_part_that_is_left_out_is_told_and_one_patch_trains_them_all() -> None:
    findings = found("C163", "bad_two_on_one_line")
    assert sorted(f.statement.split()[0] for f in findings) == ["net.think", "net.write"]
    (patch,) = {p for f in findings for p in f.patch}
    assert patch.summary == "train net.think and net.write too"
    assert "[*net.read.parameters(), *net.think.parameters(), *net.write.parameters()]" in patch.replacement


def test_where_a_module_is_held_in_part_no_patch_is_certain() -> None:
    (finding,) = found("C163", "bad_beside_a_held_part")
    assert finding.statement.startswith("decoder")
    assert not finding.patch


WINDOWS = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i, (x, y) in enumerate([]):
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    {step}
"""


@pytest.mark.parametrize(("step", "summary", "behind"), [
    ("if (i + 1) % 4 == 0:\n        opt.step()", "clear the gradients of opt after every step", "opt.step()"),
    ("opt.step()", "clear the gradients of opt in every iteration", ""),
])
def test_gradients_are_cleared_as_often_as_the_patch_says(step: str, summary: str, behind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WINDOWS.replace("{step}", step))
    (finding,) = [f for f in audit([tmp_path / "train.py"]).findings if f.rule == "C101"]
    (patch,) = finding.patch
    assert patch.summary == summary
    lines = [line.strip() for line in applied((tmp_path / "train.py").read_text(), (patch,)).splitlines()]
    assert lines.count("opt.zero_grad()") == 1
    at = lines.index("opt.zero_grad()")
    assert lines[at - 1] == behind if behind else lines[at + 1] == "loss.backward()"
