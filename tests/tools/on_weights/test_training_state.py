"""Optimizer, schedule and scaler in a training checkpoint: what does not fit is told, what is design is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn


def _checkpoint(steps: int = 20, frozen: bool = False, kind: Any = None) -> dict[str, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(5)), nn.Linear(16, 3))
    if frozen:  # as a part is that was loaded: its values are no draw of an initialiser
        model[:3].requires_grad_(False)
        for p in model[:3].parameters():
            p.mul_(1.3).add_(0.05)
    optimizer = (kind or torch.optim.AdamW)(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(torch.randn(8, 16)) - 1).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
            "global_step": steps, "epoch": 1, "scaler": {"scale": 65536.0, "growth_factor": 2.0, "_growth_tracker": 3},
            "rng": torch.get_rng_state()}


def _of_other_parameters(c: dict[str, Any]) -> None:
    for state in c["optimizer"]["state"].values():
        state["exp_avg"] = torch.ones(7, 5)
        state["exp_avg_sq"] = torch.ones(7, 5)


def _swapped(c: dict[str, Any]) -> None:
    state = c["optimizer"]["state"]
    state[0], state[1] = state[1], state[0]


def _never_stepped(c: dict[str, Any]) -> None:
    c["optimizer"]["state"] = {}


def _gone(c: dict[str, Any]) -> None:
    del c["optimizer"]


def _none(c: dict[str, Any]) -> None:
    c["optimizer"] = None


def _beyond(c: dict[str, Any]) -> None:
    c["optimizer"]["state"][3]["step"] = torch.tensor(900.0)


def _negative(c: dict[str, Any]) -> None:
    c["optimizer"]["state"][2]["exp_avg_sq"][1, 1] = -0.5


def _not_finite(c: dict[str, Any]) -> None:
    c["optimizer"]["state"][4]["exp_avg"][0, 0] = float("nan")


def _without_gradient(c: dict[str, Any]) -> None:
    c["optimizer"]["state"][6]["exp_avg"].zero_()
    c["optimizer"]["state"][6]["exp_avg_sq"].zero_()


def _other_rate(c: dict[str, Any]) -> None:
    c["optimizer"]["param_groups"][0]["lr"] = 0.3


def _collapsed(c: dict[str, Any]) -> None:
    c["scaler"]["scale"] = 2.0**-14


@pytest.mark.parametrize(("change", "kind"), [
    (_of_other_parameters, "shapes"), (_swapped, "order"), (_never_stepped, "empty"), (_gone, "absent"),
    (_none, "absent"),
    (_beyond, "steps-beyond"), (_negative, "negative"), (_not_finite, "nonfinite"), (_without_gradient, "no-gradient"),
    (_other_rate, "rates"), (_collapsed, "scaler"),
])  # fmt: skip
def test_a_state_that_does_not_fit_is_told(change: Callable[[dict[str, Any]], None], kind: str, tmp_path: Path) -> None:
    checkpoint = _checkpoint()
    change(checkpoint)
    torch.save(checkpoint, tmp_path / "last.pt")
    found = [f for f in examine(tmp_path / "last.pt").findings if f.severity is not Severity.INFO]
    assert [f.measured["kind"] for f in found if f.rule == "W111"] == [kind]


@pytest.mark.parametrize("options", [
    {}, {"frozen": True}, {"steps": 0}, {"kind": torch.optim.SGD},
    {"kind": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9)}, {"kind": torch.optim.RMSprop},
    {"kind": torch.optim.Adagrad},
])  # fmt: skip
def test_a_state_that_fits_is_left_alone(options: dict[str, Any], tmp_path: Path) -> None:
    torch.save(_checkpoint(**options), tmp_path / "last.pt")
    seen = examine(tmp_path / "last.pt")
    assert [f.statement for f in seen.findings if f.severity is not Severity.INFO] == []
    assert not [n for n in seen.notes if "failed" in n]


def test_steps_that_are_counted_from_zero(tmp_path: Path) -> None:
    made = _checkpoint()
    made["iter"] = made.pop("global_step") - 1
    del made["schedule"]
    torch.save(made, tmp_path / "last.pt")
    assert [f.statement for f in examine(tmp_path / "last.pt").findings if f.severity is not Severity.INFO] == []


def test_parameters_without_moments_are_remarked(tmp_path: Path) -> None:
    torch.save(_checkpoint(frozen=True), tmp_path / "last.pt")
    (found,) = examine(tmp_path / "last.pt").findings
    assert found.severity is Severity.INFO
    assert "6 of the 12 parameters" in found.statement


def _behind(c: dict[str, Any], steps: int, told: int) -> None:
    for state in c["optimizer"]["state"].values():
        state["step"] = torch.tensor(float(steps))
    c["global_step"] = c["schedule"]["last_epoch"] = told


@pytest.mark.parametrize(("steps", "told", "wrong"), [(610, 1000, True), (500, 1000, False), (995, 1000, False),
                                                      (985, 1000, False)])
def test_an_optimizer_of_an_earlier_step(steps: int, told: int, wrong: bool, tmp_path: Path) -> None:
    """Half is accumulation over two batches, a few fewer are skipped by the scaler."""
    made = _checkpoint()
    _behind(made, steps, told)
    torch.save(made, tmp_path / "c.pt")
    kinds = [f.measured["kind"] for f in examine(tmp_path / "c.pt").findings]
    assert ("steps-behind" in kinds) is wrong


@pytest.mark.parametrize(("unseen", "told"), [
    (lambda i: (i >= 100) & (i < 160), True), (lambda i: i % 2 == 0, False), (lambda i: i >= 300, False),
    (lambda i: (i >= 1) & (i < 12), False)])  # fmt: skip
def test_rows_that_no_gradient_reached(unseen: Callable[[Any], Any], told: bool, tmp_path: Path) -> None:
    """Scattered, at the end, and few reserved tokens are of the data."""
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("embedding", nn.Embedding(400, 8))
    model.add_module("head", nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    ids = torch.arange(400)
    seen = ids[~unseen(ids)]
    for _ in range(12):
        optimizer.zero_grad()
        model(seen).square().mean().backward()
        optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    found = [f for f in examine(tmp_path / "c.pt").findings if f.rule == "W120" and f.severity is not Severity.INFO]
    assert [f.measured["at"] for f in found] == [100] * told


@pytest.mark.parametrize("loaded", [False, True])
def test_a_frozen_part_that_was_never_loaded_is_told_from_one_that_was(tmp_path: Path, loaded: bool) -> None:
    made = _checkpoint(30, frozen=True)
    if not loaded:
        for name, value in made["model"].items():
            if name.startswith(("0.", "1.", "2.")):
                made["model"][name] = (value - 0.05) / 1.3
    torch.save(made, tmp_path / "last.pt")
    (found,) = [f for f in examine(tmp_path / "last.pt").findings if f.rule == "W111"]
    kind, severity = ("partly", Severity.INFO) if loaded else ("frozen-fresh", Severity.LOW)
    assert (found.measured["kind"], found.severity) == (kind, severity)
    assert ("neither trained nor loaded" in found.statement) is not loaded


def test_a_state_that_is_written_to_files_of_its_own_is_whole(tmp_path: Path) -> None:
    """As transformers does: weights, optimizer, schedule and arguments beside each other."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(8, 4)
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    net(torch.randn(2, 8)).sum().backward()
    optimizer.step()
    schedule.step()
    torch.save({**net.state_dict(), "last_epoch": 1}, tmp_path / "pytorch_model.bin")
    torch.save(schedule.state_dict(), tmp_path / "scheduler.pt")

    def absent() -> list[str]:
        reports = [examine(tmp_path / n) for n in ("pytorch_model.bin", "scheduler.pt")]
        return [f.measured["kind"] for r in reports for f in r.findings if f.rule == "W111"]  # type: ignore[misc]

    assert absent() == ["absent"]
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    assert absent() == []
