"""Several networks in one file, each with an optimizer: moments are compared with the network that they are of (W111),
and a network that stood still while its optimizer made steps is named (W155)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn

Change = Callable[[dict[str, Any], dict[str, Any]], None]


def _run(alone: bool = False) -> list[dict[str, Any]]:
    """Two checkpoints of an adversarial pair, or of one optimizer over both."""
    torch.manual_seed(0)
    made, fake = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 32)), []
    judge = nn.Sequential(nn.Linear(32, 14), nn.Tanh(), nn.Linear(14, 1))
    nets = {"generator": made, "discriminator": judge}
    groups = {"opt": [*made.parameters(), *judge.parameters()]} if alone else {
        "opt_g": list(made.parameters()), "opt_d": list(judge.parameters())}
    optimizers = {k: torch.optim.Adam(v, lr=1e-3) for k, v in groups.items()}
    for step in range(1, 21):
        for optimizer in optimizers.values():
            optimizer.zero_grad()
            judge(made(torch.randn(8, 6))).square().mean().backward()
            optimizer.step()
        if step % 10 == 0:
            fake.append(copy.deepcopy({"step": step, **{k: n.state_dict() for k, n in nets.items()},
                                       **{k: o.state_dict() for k, o in optimizers.items()}}))
    return fake


def _findings(folder: Path, one: dict[str, Any], two: dict[str, Any], rule: str) -> list[Any]:
    for name, made in (("a.pt", one), ("b.pt", two)):
        torch.save(made, folder / name)
    seen = examine(folder / "a.pt", folder / "b.pt")
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == rule]


@pytest.mark.parametrize("alone", [False, True])
def test_moments_of_another_network_in_the_file_are_no_strange_shapes(alone: bool, tmp_path: Path) -> None:
    one, two = _run(alone)
    assert _findings(tmp_path, one, two, "W111") == []
    assert _findings(tmp_path, one, two, "W155") == []


def test_moments_of_no_network_in_the_file_are_told(tmp_path: Path) -> None:
    one, two = _run()
    one["discriminator"]["0.weight"] = torch.randn(15, 32)
    assert [f.measured["kind"] for f in _findings(tmp_path, one, two, "W111")] == ["shapes"]


@pytest.mark.parametrize("still", ["generator", "discriminator"])
def test_the_network_that_stood_still_is_named(still: str, tmp_path: Path) -> None:
    one, two = _run()
    two[still] = one[still]
    (found,) = _findings(tmp_path, one, two, "W155")
    assert found.measured["name"] == still
    assert f"opt_{still[0]} made steps from 10 to 20" in found.statement
    (again,) = _findings(tmp_path, two, one, "W155")  # whichever file comes first
    assert "made steps from 10 to 20" in again.statement


def _not_trained(one: dict[str, Any], two: dict[str, Any]) -> None:
    two["discriminator"], two["opt_d"] = one["discriminator"], one["opt_d"]


def _rate_of_zero(one: dict[str, Any], two: dict[str, Any]) -> None:
    two["discriminator"] = one["discriminator"]
    for made in (one, two):
        made["opt_d"]["param_groups"][0]["lr"] = 0.0


def _both_still(one: dict[str, Any], two: dict[str, Any]) -> None:
    two["discriminator"], two["generator"] = one["discriminator"], one["generator"]


def _one_bit(one: dict[str, Any], two: dict[str, Any]) -> None:
    two["discriminator"] = {k: v.clone() for k, v in one["discriminator"].items()}
    two["discriminator"]["0.bias"][0] += 1e-6


def _target(one: dict[str, Any], two: dict[str, Any]) -> None:
    """A copy of the discriminator that waits for the next exchange."""
    for made in (one, two):
        made["target_discriminator"] = one["discriminator"]


@pytest.mark.parametrize("change", [_not_trained, _rate_of_zero, _both_still, _one_bit, _target])
def test_what_looks_like_it_is_quiet(change: Change, tmp_path: Path) -> None:
    one, two = _run()
    change(one, two)
    assert _findings(tmp_path, one, two, "W155") == []


def test_states_that_are_none_are_read(tmp_path: Path) -> None:
    one, two = _run()
    two["discriminator"] = one["discriminator"]
    one["opt_d"]["state"] = {0: None, 1: 3}
    two["opt_d"]["param_groups"] = [{}]
    assert _findings(tmp_path, one, two, "W155") == []
