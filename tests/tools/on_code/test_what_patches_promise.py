"""A patch does what its summary says, and as much of it as the finding needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_code import audit
from traindx_tools.on_code.patching import applied

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


READER = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = nn.LSTM(12, 32{first})
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        seen, _ = self.core(x)
        return self.out({read})


def main():
    net = Net()
    data = TensorDataset(torch.randn(100, 20, 12), torch.randint(0, 2, (100,)))
    opt = torch.optim.Adam(net.parameters())
    for x, y in DataLoader(data, {loading}):
        opt.zero_grad()
        nn.functional.cross_entropy(net({given}), y).backward()
        opt.step()


main()
"""
PLAIN = {"first": "", "read": "seen.mean(1)", "loading": "batch_size=8", "given": "x"}


@pytest.mark.parametrize(("changed", "told", "patched"), [
    ({}, True, True), ({"read": "seen[:, -1]"}, True, True),
    ({"read": "seen[-1]"}, True, False),  # with the batch first, this is the last sample
    ({"first": ", batch_first=True"}, False, False), ({"given": "x.transpose(0, 1)"}, False, False),
    ({"given": "x[0]"}, False, False), ({"loading": "batch_size=None"}, False, False),
    ({"loading": "collate_fn=pack"}, False, False),
])
def test_a_batch_of_a_loader_has_the_samples_on_axis_0(changed: dict[str, str], told: bool, patched: bool,
                                                      tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(READER.format(**PLAIN | changed))
    findings = [f for f in audit([tmp_path / "train.py"]).findings if f.rule == "C331"]
    assert [bool(f.patch) for f in findings] == [patched] * told
