"""What cannot be run again is said, with why, and nothing is concluded from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import programs
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from traindx_tools.on_torch.monitor import Monitor
from traindx_tools.on_torch.replaying import study, trials
from traindx_tools.on_torch.replaying.passing import Pass

pytestmark = pytest.mark.slow


def records(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "rank00000.jsonl").read_text().splitlines()
    return [r for r in map(json.loads, lines) if r["kind"] == "replay"]


class Streaming(nn.Module):
    """A model that draws from an iterator: what it took cannot be given back."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = programs.net()
        self.stream = (float(i) for i in range(1_000_000))

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.inner(x) * (1.0 + 0.0 * next(self.stream)))


def loop(model: nn.Module, change: Callable[[Tensor, int], Tensor], steps: int = 8) -> None:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(steps):
        x, y = programs.regression(16)
        loss = change(functional.mse_loss(model(x), y), step)
        optimizer.zero_grad()
        loss.backward()
        if not loss.isfinite():
            return
        optimizer.step()


def broken_at_five(loss: Tensor, step: int) -> Tensor:
    return loss * (float("nan") if step == 5 else 1.0)


def test_a_model_that_cannot_be_set_back_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        loop(Streaming(), broken_at_five)
    assert not [f for f in monitor.findings if f.rule[0] == "X"]
    (record,) = records(tmp_path)
    assert "cannot be set back" in record["failed"]
    assert "was not tried: Streaming.stream is a generator" in capsys.readouterr().err


def test_a_step_whose_loss_does_not_come_again_gives_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    plain = Pass.run

    def other(self: Pass, *, gradients: bool) -> Any:
        gave = plain(self, gradients=gradients)
        return type(gave)(gave.loss * 1.5, gave.gradients, gave.took)

    monkeypatch.setattr(Pass, "run", other)
    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        programs.high_rate()
    assert not [f for f in monitor.findings if f.rule[0] == "X" and f.measured["symptom"] == "loss-jump"]
    assert "when it is run again, and was" in capsys.readouterr().err


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * 2


def test_a_gradient_of_the_loop_s_own_cannot_be_made_again(tmp_path: Path) -> None:
    def change(loss: Tensor, step: int) -> Tensor:
        doubled: Tensor = Doubled.apply(loss)  # type: ignore[no-untyped-call]
        return doubled * (1e4 if step == 5 else 1.0)

    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        loop(programs.net(), change)
    assert not [f for f in monitor.findings if f.rule[0] == "X"]
    assert "has no gradient" in records(tmp_path)[0]["failed"]


def test_gradients_that_the_program_changes_are_taken_as_they_are(tmp_path: Path) -> None:
    """The update is made again from the gradients that it took; what needs others cannot be tried."""
    torch.manual_seed(0)
    model = programs.net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        for step in range(40):
            x, y = programs.regression(32)
            loss = functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            for p in model.parameters():
                assert p.grad is not None
                p.grad.mul_(200.0 if step == 30 else 0.9).add_(1e-3)
            optimizer.step()
    finding = next(f for f in monitor.findings if f.measured.get("symptom") == "loss-jump")
    table = {row[0]: row[1:] for row in finding.measured["table"]}  # type: ignore[union-attr, index, misc]
    assert table["float64"] == ("cannot be tried", "the program changes gradients by itself before the step")
    assert table["learning-rate:times=0.1"][0] in ("removes the symptom", "moves it")  # type: ignore[index]


def test_several_optimizers_leave_the_update_out(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = programs.net()
    both = [torch.optim.SGD(list(m.parameters()), lr=0.01) for m in (model[0], model[2])]
    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        for step in range(6):
            x, y = programs.regression(16)
            loss = functional.mse_loss(model(x * (float("inf") if step == 4 else 1.0)), y)
            for optimizer in both:
                optimizer.zero_grad()
            loss.backward()
            if loss.isfinite():
                for optimizer in both:
                    optimizer.step()
    (finding,) = [f for f in monitor.findings if f.rule[0] == "X"]
    table = {row[0]: row[2] for row in finding.measured["table"]}  # type: ignore[union-attr, index, misc]
    assert table["fresh-state"] == "several optimizers make the steps"
    assert "last-update-left-out" not in table


def test_a_batch_that_was_asked_for_too_early_is_said(tmp_path: Path) -> None:
    """A loader that is asked for the next batch before the step: the passes of the step are no longer there."""
    torch.manual_seed(0)
    model, data = programs.net(), programs.regression()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        batches = iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=16))
        x, y = next(batches)
        for _ in range(12):
            loss = functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            x, y = next(batches)
            optimizer.step()
    first = min((f for f in monitor.findings if f.rule[0] == "X"), key=lambda f: f.where.step or 0.0)
    table = {row[0]: row[2] for row in first.measured["table"]}  # type: ignore[union-attr, index, misc]
    assert "were not kept" in table["float64"]
    assert "->" in table["learning-rate:times=0.1"]


def test_what_does_not_fit_into_the_time_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study.study, "__defaults__", (0, 0.0))
    with Monitor(out=tmp_path, probes=(), snapshot=True) as monitor:
        programs.bad_row()
    (finding,) = [f for f in monitor.findings if f.rule[0] == "X"]
    assert finding.rule == "X302"
    assert all("the time was up (0 s)" in row[2] for row in finding.measured["table"]  # type: ignore[union-attr, index, misc, operator]
               if row[0] != "last-update-left-out")  # type: ignore[index]


def test_a_fault_of_its_own_costs_the_study_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                           capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a defect")

    bare = programs.high_rate()
    monkeypatch.setattr(trials.Trials, "control", broken)
    with Monitor(out=tmp_path, probes=(), snapshot=True):
        assert programs.high_rate() == bare
    assert "RuntimeError: a defect" in capsys.readouterr().err
