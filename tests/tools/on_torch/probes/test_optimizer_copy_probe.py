"""Save, load, step against step: optimizers whose state_dict leaves something out, and those whose does not."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.optimizer_copy import OptimizerCopyProbe


class Momentum(torch.optim.Optimizer):
    """Moments where the test wants them."""

    def __init__(self, parameters, where):
        super().__init__(list(parameters), {"lr": 0.05})
        self.where, self.calls = where, 0
        self.moments = {p: torch.zeros_like(p) for p in self.param_groups[0]["params"]} if where == "dict" else None
        if where == "list":
            self.moments = [torch.zeros_like(p) for p in self.param_groups[0]["params"]]

    @torch.no_grad()
    def step(self, closure=None):
        self.calls += 1
        for group in self.param_groups:
            for number, p in enumerate(group["params"]):
                if self.where == "state":
                    kept = self.state[p].setdefault("moment", torch.zeros_like(p))
                elif self.where == "counter":
                    kept = torch.zeros_like(p) + 0.1 * self.calls
                else:
                    kept = self.moments[p if self.where == "dict" else number]
                kept.mul_(0.9).add_(p.grad)
                p.sub_(group["lr"] * kept)


class Noisy(torch.optim.Optimizer):
    """Langevin noise: it repeats with the same random numbers."""

    def __init__(self, parameters):
        super().__init__(list(parameters), {"lr": 0.01})

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.sub_(self.param_groups[0]["lr"] * p.grad + 0.001 * torch.randn_like(p))


class Around(torch.optim.Optimizer):
    """Holds another optimizer: stepping a copy would step that."""

    def __init__(self, base):
        super().__init__(base.param_groups[0]["params"], {})
        self.base = base

    def step(self, closure=None):
        self.base.step()


def train(make, save=True, steps=8):
    torch.manual_seed(0)
    model = nn.Linear(6, 2)
    optimizer = make(model.parameters())
    for _ in range(steps):
        x = torch.randn(8, 6)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()
    if save:
        torch.save({"optimizer": optimizer.state_dict()}, io.BytesIO())
    return [p.detach().clone() for p in model.parameters()], torch.rand(2)


@pytest.mark.parametrize(("where", "attribute"), [("dict", "moments"), ("list", "moments"), ("counter", "calls")])
def test_state_that_is_lost(where, attribute, watching):
    with watching(OptimizerCopyProbe) as seen:
        train(lambda p: Momentum(p, where))
    finding = seen.one("T342")
    assert finding.measured["attributes"] == attribute
    assert seen.loud


def test_nobody_saves(watching):
    with watching(OptimizerCopyProbe) as seen:
        train(lambda p: Momentum(p, "dict"), save=False)
    assert seen.one("T342").severity.value == "low"


@pytest.mark.parametrize("make", [
    lambda p: Momentum(p, "state"), Noisy, torch.optim.AdamW, lambda p: torch.optim.SGD(p, 0.1)],
    ids=["state", "noise", "AdamW", "SGD"])
def test_state_that_is_saved(make, watching):
    with watching(OptimizerCopyProbe) as seen:
        train(make)
    assert seen.rules == []
    assert seen.probes[0].not_asked == ""


def test_one_that_holds_another_is_left_alone(watching):
    with watching(OptimizerCopyProbe) as seen:
        train(lambda p: Around(torch.optim.SGD(p, 0.1)))
    assert seen.rules == []
    assert "SGD" in seen.probes[0].not_asked


@pytest.mark.parametrize("make", [lambda p: Momentum(p, "dict"), lambda p: Momentum(p, "counter"), Noisy,
                                  lambda p: Around(torch.optim.SGD(p, 0.1))],
                         ids=["dict", "counter", "noise", "around"])
def test_nothing_is_changed(make, watching):
    alone = train(make)
    with watching(OptimizerCopyProbe):
        watched = train(make)
    assert all(map(torch.equal, alone[0], watched[0]))
    assert torch.equal(alone[1], watched[1])
