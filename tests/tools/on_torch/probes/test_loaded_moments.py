"""T734: second moments that were loaded beside the gradients that follow."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from traindx_tools.on_torch.probes.loaded_moments import LoadedMomentsProbe


class Towers(nn.Module):
    """Two layers of one shape that see inputs of different patterns."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.out = nn.Linear(12, 16), nn.Linear(12, 16), nn.Linear(32, 1)

    def forward(self, x):
        small = torch.logspace(0, -2, 12)
        return self.out(torch.cat([self.left(x * small).tanh(), self.right(x * small.flip(0)).tanh()], 1))


def steps(net, optimizer, count, seed, scale=1.0, spread=1.0):
    random = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = spread * torch.randn(32, 12, generator=random)
        optimizer.zero_grad()
        (scale * (net(x)[:, 0] - x[:, 0] - x[:, 11]).pow(2).mean()).backward()
        optimizer.step()


def resumed(watching, change=lambda state: state, scale=1.0, make=torch.optim.Adam, spread=1.0):
    torch.manual_seed(0)
    net = Towers()
    first = make(net.parameters(), 1e-3)
    steps(net, first, 60, 1, scale)
    with watching(LoadedMomentsProbe) as seen:
        optimizer = make(net.parameters(), 1e-3)
        optimizer.load_state_dict(change(copy.deepcopy(first.state_dict())))
        steps(net, optimizer, 12, 2, spread=spread)
    return seen


def exchanged(state):
    """As of groups whose parameters stood in another order: left and right have each other's."""
    held = state["state"]
    held[0], held[1], held[2], held[3] = held[2], held[3], held[0], held[1]
    return state


def test_moments_of_another_parameter_of_the_same_shape(watching):
    finding = resumed(watching, exchanged).one("T734")
    assert (finding.measured["kind"], finding.measured["names"]) == ("exchanged", ("left.weight and right.weight",))


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.RMSprop])
def test_moments_of_a_loss_that_was_summed(watching, make):
    finding = resumed(watching, scale=256.0, make=make).one("T734")
    assert finding.measured["kind"] == "scale"
    assert 1e4 < finding.measured["factor"] < 3e5
    assert "times as large" in finding.measured["how"]


def inflated(factor):
    def change(state):
        for number in (0, 1):
            state["state"][number]["exp_avg_sq"] *= factor
        return state
    return change


def test_moments_of_a_part_of_the_parameters(watching):
    finding = resumed(watching, inflated(1e6)).one("T734")
    assert (finding.measured["kind"], finding.measured["names"]) == ("part", ("left.weight", "left.bias"))
    assert "left.weight, left.bias" in finding.statement
    assert finding.where.file.endswith("test_loaded_moments.py")
    assert "optimizer.load_state_dict" in Path(finding.where.file).read_text().splitlines()[finding.where.line - 1]


def test_a_part_that_is_larger_by_less_than_the_factor_is_left_alone(watching):
    assert resumed(watching, inflated(50.0)).findings == []


@pytest.mark.parametrize("spread", [1.0, 0.5, 2.0])
def test_a_resume_and_data_of_another_spread_are_left_alone(watching, spread):
    assert resumed(watching, spread=spread).findings == []


def test_a_state_without_moments_or_with_empty_ones_says_nothing(watching):
    assert resumed(watching, make=torch.optim.SGD).findings == []

    def emptied(state):
        for held in state["state"].values():
            held["exp_avg_sq"].zero_()
        return state

    assert resumed(watching, emptied).findings == []
    assert resumed(watching, lambda state: {**state, "state": {}}).findings == []


class LateShape(nn.Module):
    """Its last layer gets its shape in the first call."""

    def __init__(self):
        super().__init__()
        self.left, self.out = nn.Linear(12, 16), nn.LazyLinear(1)

    def forward(self, x):
        return self.out(self.left(x).tanh())


def test_a_model_with_lazy_layers_is_looked_at_from_its_first_shapes_on(watching):
    torch.manual_seed(0)
    with watching(LoadedMomentsProbe) as seen:
        net = LateShape()
        net(torch.zeros(1, 12))
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        steps(net, optimizer, 60, 1)
        optimizer.load_state_dict(inflated(1e6)(copy.deepcopy(optimizer.state_dict())))
        steps(net, optimizer, 12, 2)
    assert seen.one("T734").measured["names"] == ("left.weight", "left.bias")
