"""Frozen weights among trained siblings that were drawn alike, and parts that are frozen on purpose."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from traindx_tools.on_torch.probes.siblings import SiblingsProbe
from traindx_tools.program.siblings import Weight, left_out

WIDTH = 24


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.up, self.down = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        x = x + torch.tanh(self.mix(x))
        return x + self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(12, WIDTH), nn.Linear(WIDTH, 2)
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Distilled(nn.Module):
    """A fixed random target beside its predictor."""

    def __init__(self):
        super().__init__()
        self.target, self.predictor = (nn.Sequential(nn.Linear(12, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
                                       for _ in range(2))

    def forward(self, x):
        return self.predictor(x) - self.target(x)


def trained(model, chosen, steps=30):
    for name, p in model.named_parameters():
        p.requires_grad_(chosen(name))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-3)
    for _ in range(steps):
        loss = model(torch.randn(16, 12)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def loaded():
    """Weights as a training left them: of another spread in each place."""
    model = Net()
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.mul_(1.0 + 0.17 * (k % 7))
    return model


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        torch.manual_seed(0)
        with watching(SiblingsProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize(("chosen", "kind", "still"), [
    (lambda n: "mix" not in n, "role", {f"blocks.{k}.mix.weight" for k in range(4)}),
    (lambda n: "blocks.2" not in n, "row", {f"blocks.2.{k}.weight" for k in ("mix", "up", "down")}),
    (lambda n: "blocks" not in n or n.split(".")[1] in "01", "row",
     {f"blocks.{b}.{k}.weight" for b in (2, 3) for k in ("mix", "up", "down")}),
], ids=["a role", "a block", "late blocks"])
def test_what_a_pattern_misses(told, chosen, kind, still):
    (found,) = told(lambda: trained(Net(), chosen))
    assert (found.rule, found.bearing.value, found.measured["kind"]) == ("T346", "cause", kind)
    assert set(found.measured["weights"]) == still


@pytest.mark.parametrize(("make", "chosen"), [
    (Net, lambda n: True),
    (Net, lambda n: "head" in n),
    (Net, lambda n: "bias" in n),
    (Net, lambda n: "stem" not in n and "blocks.0" not in n),
    (Net, lambda n: "blocks.0" not in n),
    (loaded, lambda n: "mix" not in n),
    (Distilled, lambda n: "target" not in n),
], ids=["all", "a head", "biases", "lower blocks frozen", "a lower block frozen", "loaded", "a random target"])
def test_frozen_on_purpose(told, make, chosen):
    assert told(lambda: trained(make(), chosen)) == []


def test_unfrozen_later(told):
    def program():
        model = Net()
        trained(model, lambda n: "mix" not in n, steps=25)
        trained(model, lambda n: True, steps=5)
    assert told(program) == []


def test_broken_inputs(told):
    assert told(lambda: trained(Net(), lambda n: "mix" not in n, steps=3)) == []
    nan = float("nan")
    assert left_out([]) is None
    assert left_out([Weight("a.0.w", (32, 32), nan, nan, True), Weight("a.1.w", (32, 32), 0.0, 0.0, False)]) is None
