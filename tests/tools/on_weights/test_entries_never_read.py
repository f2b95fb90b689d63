"""State in a checkpoint that a program which goes on from it never takes out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.examine import examine  # noqa: E402
from traindx_tools.finding import Finding  # noqa: E402

TRAIN = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
ck = torch.load("ckpt/last.pt")
net.load_state_dict(ck["net"])
{restored}
for step in range(ck["iter"], 100):
    loss = net(torch.randn(16, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
torch.save({{"net": net.state_dict(), "opt": opt.state_dict(), "norm": 0, "iter": step}}, "ckpt/last.pt")
"""
ALL = 'opt.load_state_dict(ck["opt"])\nnorm = ck["norm"]'


def project(folder: Path, code: str, more: dict[str, Any] | None = None) -> list[Finding]:
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    opt = torch.optim.Adam(net.parameters())
    net(torch.randn(16, 4)).square().mean().backward()
    opt.step()
    (folder / "ckpt").mkdir()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "iter": 1,
                "norm": {"mean": torch.zeros(4), "var": torch.ones(4), "count": 9.0},
                "rng": torch.get_rng_state(), **(more or {})}, folder / "ckpt" / "last.pt")
    (folder / "train.py").write_text(code)
    return [f for f in examine([folder]).findings if f.rule == "W138"]


@pytest.mark.parametrize(("restored", "name", "kind"), [
    ('opt.load_state_dict(ck["opt"])', "norm", "statistics"), ('norm = ck["norm"]', "opt", "optimizer"),
])
def test_what_is_never_taken_out_is_named(restored: str, name: str, kind: str, tmp_path: Path) -> None:
    (found,) = project(tmp_path, TRAIN.format(restored=restored))
    assert found.statement.startswith(f"{name} of ")
    assert found.measured["kind"] == kind


def test_a_schedule_of_plain_values_is_state_too(tmp_path: Path) -> None:
    (found,) = project(tmp_path, TRAIN.format(restored=ALL), {"scheduler": {"last_epoch": 3, "_step_count": 4}})
    assert found.measured["kind"] == "schedule"


@pytest.mark.parametrize("code", [
    TRAIN.format(restored=ALL),
    TRAIN.format(restored='opt.load_state_dict(ck["opt"])\nfor name, state in ck.items():\n    print(name)'),
    TRAIN.format(restored='opt.load_state_dict(ck["opt"])\nprint(len(ck["net"]), list(map(str, [ck])))\nrestore(ck)'),
    'import torch\nck = torch.load("ckpt/last.pt")\nprint(ck["net"], ck["iter"], ck["opt"])\n',
    'import torch\nck = torch.load("ckpt/last.pt")\nloss = f(ck["net"])\nloss.backward()\n',
    "def broken(:\n", "",
])
def test_all_of_it_no_training_and_what_cannot_be_read_are_quiet(code: str, tmp_path: Path) -> None:
    assert project(tmp_path, code) == []


def test_several_steps_in_each_iteration_are_no_contradiction(tmp_path: Path) -> None:
    net = torch.nn.Linear(4, 1)
    opt = torch.optim.Adam(net.parameters())
    for _ in range(48):
        net(torch.randn(8, 4)).sum().backward()
        opt.step()
    for key, seen in (("iter", 0), ("global_step", 1)):
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), key: 3}, tmp_path / "last.pt")
        told = [f for f in examine([tmp_path]).findings if f.rule == "W111" and "count more" in f.statement]
        assert len(told) == seen


@pytest.mark.parametrize("taken", [
    'print(ck["iter"])', 'print(f"weights of step {ck[\'iter\']}, {ck[\'args\']}")', 'width = ck["args"]["width"]'])
def test_fine_tuning_takes_the_weights_and_goes_on_from_nothing(taken: str, tmp_path: Path) -> None:
    code = TRAIN.format(restored=taken).replace('range(ck["iter"], 100)', "range(100)")
    assert project(tmp_path, code, {"args": {"width": 8}}) == []
