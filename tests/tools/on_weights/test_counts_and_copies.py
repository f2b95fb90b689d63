"""Schedules behind their run, layers of a recurrent module, copied units, bytes of a vocabulary, learnt tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.examine import examine as examine_run
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn


def told(folder: Path, checkpoint: dict[str, Any], rule: str, config: dict[str, Any] | None = None) -> list[Finding]:
    torch.save(checkpoint, folder / "last.pt")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return [f for f in examine(folder / "last.pt").findings if f.rule == rule and f.severity is not Severity.INFO]


def trained(model: Any, steps: int = 60) -> Any:
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        made = model(torch.randn(8, 5, 6))
        (made[0] if isinstance(made, tuple) else made).pow(2).sum().backward()
        optimizer.step()
    return optimizer


def scheduled(count: int, length: int = 80) -> dict[str, Any]:
    model = nn.Linear(6, 4)
    optimizer = trained(model)
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "global_step": 60, "epoch": 3,
            "scheduler": {"T_max": length, "last_epoch": count, "_step_count": count + 1}}


def test_a_schedule_that_was_started_anew_is_behind_the_run(tmp_path: Path) -> None:
    (found,) = told(tmp_path, scheduled(20), "W111", {"max_steps": 80})
    assert found.measured["kind"] == "schedule-behind"
    assert "scheduler.last_epoch is 20, and global_step is 60" in found.statement


@pytest.mark.parametrize(("count", "length", "config"), [
    (60, 80, {"max_steps": 80}), (59, 80, {"max_steps": 80}),  # in step
    (3, 80, {"max_steps": 80}),  # stepped each epoch, as the epoch says
    (20, 20, {"max_steps": 80}), (20, 80, {"epochs": 80}), (20, 80, None),  # a length of its own
])
def test_a_schedule_in_step_or_of_its_own_unit_is_quiet(
        count: int, length: int, config: dict[str, Any] | None, tmp_path: Path) -> None:
    assert told(tmp_path, scheduled(count, length), "W111", config) == []


def test_a_recurrent_layer_of_fewer_steps_is_a_module(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.LSTM(6, 5, 2))
    state = trained(model).state_dict()
    whole = {"model": model.state_dict(), "optimizer": state, "step": 60}
    assert told(tmp_path, whole, "W111") == []
    for key in range(2, 6):
        state["state"][key]["step"] = torch.tensor(30.0)
    (found,) = told(tmp_path, whole, "W111")
    assert "all 4 parameters of 1.l0 (1.weight_ih_l0 first) have made 30 steps" in found.statement


def convolution(copied: bool, norm: bool = True) -> dict[str, Any]:
    torch.manual_seed(1)
    weight = torch.randn(32, 8, 3, 3)
    scale, bias = torch.randn(32), torch.randn(32)
    if copied:
        weight[20:24] = weight[:4]
        if norm:
            scale[20:24], bias[20:24] = scale[:4], bias[:4]
    return {"conv.weight": weight, "bn.weight": scale, "bn.bias": bias, "fc.weight": torch.randn(5, 32)}


def test_units_that_were_copied_whole_are_told(tmp_path: Path) -> None:
    (found,) = told(tmp_path, convolution(True), "W105")
    assert "4 of the 32 rows of conv.weight" in found.statement
    assert "bn.weight are equal as well" in found.statement


def test_rows_of_their_own_scale_and_fresh_norms_are_quiet(tmp_path: Path) -> None:
    assert told(tmp_path, convolution(False), "W105") == []
    assert told(tmp_path, convolution(True, norm=False), "W105") == []
    fresh = convolution(True) | {"bn.weight": torch.ones(32), "bn.bias": torch.zeros(32)}
    assert told(tmp_path, fresh, "W105") == []


def embedding(first: int, count: int) -> dict[str, Any]:
    model = nn.Embedding(1500, 8)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(12):
        optimizer.zero_grad()
        ids = torch.arange(1500)
        model(ids[(ids < first) | (ids >= first + count)]).pow(2).sum().backward()
        optimizer.step()
    return {"model": {"emb.weight": model.weight.detach()}, "optimizer": optimizer.state_dict(), "step": 12}


@pytest.mark.parametrize(("first", "tokeniser", "seen"), [
    (96, '{"pre_tokenizer": {"type": "ByteLevel"}}', 0), (700, '{"pre_tokenizer": {"type": "ByteLevel"}}', 1),
    (96, '{"model": {"type": "WordLevel"}}', 1), (96, "", 1)])
def test_bytes_that_no_text_holds_come_first_in_a_vocabulary(
        first: int, tokeniser: str, seen: int, tmp_path: Path) -> None:
    if tokeniser:
        (tmp_path / "tokenizer.json").write_text(tokeniser)
    assert len(told(tmp_path, embedding(first, 126), "W120")) == seen


@pytest.mark.parametrize("name", ["mask_token", "mean", "inv_freq_scale"])
def test_a_learnt_tensor_that_is_called_as_a_table_is_no_misfit(name: str, tmp_path: Path) -> None:
    class Masked(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)
            self.register_parameter(name, nn.Parameter(torch.randn(1, 1, 6) * 0.02))

        def forward(self, x: Any) -> Any:
            return self.layer(x) + self.get_parameter(name)

    model = Masked()
    optimizer = trained(model)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    assert told(tmp_path, state, "W111") == []
    state["optimizer"]["state"][0]["exp_avg"] = torch.randn(7, 3)
    assert len(told(tmp_path, state, "W111")) == 1


NET = """import torch
from torch import nn
from safetensors.torch import load_file

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(d), nn.Linear(d, d)

class Net(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.stem, self.head = nn.Linear(3, d), nn.Linear(d, 2)
        self.blocks = nn.ModuleList(Block(d) for _ in range(n))

model = Net(**settings())
model.load_state_dict(torch.load("net.pt"), strict=False)
"""


@pytest.mark.parametrize(("first", "seen"), [(0, False), (1, True)])
def test_a_list_that_the_file_counts_from_one(first: int, seen: bool, tmp_path: Path) -> None:
    names = ["stem", "head", *(f"blocks.{i}.{n}" for i in range(first, first + 3) for n in ("norm", "up"))]
    torch.save({f"{n}.{w}": torch.randn(4, 4) if w == "weight" and "norm" not in n else torch.randn(4)
                for n in names for w in ("weight", "bias")}, tmp_path / "net.pt")
    (tmp_path / "train.py").write_text(NET)
    found = [f for f in examine(tmp_path / "net.pt", code=audit([tmp_path / "train.py"]).projects).findings
             if f.measured.get("kind") == "offset"]
    assert bool(found) is seen
    assert all("counts blocks from 1 and the model from 0" in f.statement for f in found)


@pytest.mark.parametrize(("code", "severity"), [
    ('torch.save(model.state_dict(), "model.pt")\n', Severity.MEDIUM),
    ('model.load_state_dict(torch.load("model.pt"))\ntorch.save(model.state_dict(), "model.pt")\n', Severity.CRITICAL),
])
def test_what_the_run_made_is_no_cause_of_it(code: str, severity: Severity, tmp_path: Path) -> None:
    torch.save({"0.weight": torch.full((4, 4), float("nan"))}, tmp_path / "model.pt")
    (tmp_path / "train.py").write_text(f"import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(4, 4))\n{code}")
    (found,) = (f for f in examine_run([tmp_path]).findings if f.rule == "W101")
    assert found.severity is severity
