"""Averages and sums whose increments are rounded away, in several spellings, and those that move."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from traindx_tools.on_torch.measures.rounded_away import RoundedAway
from traindx_tools.on_torch.probes.averages import AveragesProbe
from traindx_tools.on_torch.rules import t349_increments_rounded_away
from traindx_tools.on_torch.rules.t349_increments_rounded_away import Stuck


def lerp(averages, weights, d):
    for a, w in zip(averages, weights, strict=True):
        a.lerp_(w.to(a.dtype), 1 - d)


def scaled_and_added(averages, weights, d):
    for a, w in zip(averages, weights, strict=True):
        a.mul_(d).add_(w.to(a.dtype), alpha=1 - d)


def lists(averages, weights, d):
    torch._foreach_mul_(averages, d)
    torch._foreach_add_(averages, [w.to(averages[0].dtype) for w in weights], alpha=1 - d)


def copied(averages, weights, d):
    for a, w in zip(averages, weights, strict=True):
        a.copy_(d * a + (1 - d) * w.to(a.dtype))


def the_other_way(averages, weights, d):
    for a, w in zip(averages, weights, strict=True):
        a.data = (1 - d) * w.to(a.dtype) + a * d


def part_of_the_way(averages, weights, d):
    for a, w in zip(averages, weights, strict=True):
        a.add_((w.to(a.dtype) - a) * (1 - d))


def part_of_the_way_back(averages, weights, d):
    for a, w in zip(averages, weights, strict=True):
        a -= (1 - d) * (a - w.to(a.dtype))


def trained(update, dtype, decay, steps=90):
    """Weights walk far away from the average that began with them."""
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4))
    average = [p.detach().to(dtype).clone() for p in model.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(steps):
        x = torch.randn(16, 12)
        loss = (model(x) - x[:, :4]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            update(average, list(model.parameters()), decay)
    return [p.detach().clone() for p in model.parameters()], average


def summed(dtype, start, amount, *, in_place):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    total = torch.full((), start, dtype=dtype)
    for _ in range(70):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        more = torch.full((), amount, dtype=dtype)
        if in_place:
            total += more
        else:
            total = total + more


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        torch.manual_seed(0)
        with watching(AveragesProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize("update", [
    lerp, scaled_and_added, lists, copied, the_other_way, part_of_the_way, part_of_the_way_back])
@pytest.mark.parametrize(("dtype", "decay"), [(torch.bfloat16, 0.999), (torch.float16, 0.9999)])
def test_averages_that_stand_still(told, update, dtype, decay):
    found = told(lambda: trained(update, dtype, decay))
    assert {f.measured["kind"] for f in found} == {"average"}
    assert found[0].bearing.value == "cause"
    assert found[0].measured["weight"] == pytest.approx(1 - decay)


def settling(update, dtype, decay, steps):
    """Weights go somewhere and stay there; the average follows, most of the way."""
    weights = [nn.Parameter(torch.randn(400))]
    average = [weights[0].detach().to(dtype) * 0.3]
    optimizer = torch.optim.SGD(weights, 1e-4)
    for _ in range(steps):
        weights[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            update(average, weights, decay)


def test_an_average_that_moves_at_first_and_stops_on_its_way(told):
    (found,) = told(lambda: settling(part_of_the_way, torch.bfloat16, 0.99, 720))
    assert (found.measured["kind"], found.where.step) == ("average", 700)
    assert told(lambda: settling(part_of_the_way, torch.float32, 0.99, 720)) == []


def test_an_averaged_model_in_half_precision(told):
    def program():
        model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4))
        average = AveragedModel(copy.deepcopy(model).bfloat16(), multi_avg_fn=get_ema_multi_avg_fn(0.999))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(90):
            x = torch.randn(16, 12)
            loss = (model(x) - x[:, :4]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(copy.deepcopy(model).bfloat16())
    assert [f.rule for f in told(program)] == ["T349"]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(("dtype", "start", "amount"), [
    (torch.bfloat16, 600.0, 0.7), (torch.float16, 2048.0, 0.9), (torch.float32, 2.0**24, 1.0)])
def test_sums_that_stand_still(told, dtype, start, amount, in_place):
    (found,) = told(lambda: summed(dtype, start, amount, in_place=in_place))
    assert found.measured["kind"] == "sum"


@pytest.mark.parametrize("program", [
    lambda: trained(lerp, torch.float32, 0.999), lambda: trained(copied, torch.float32, 0.9999),
    lambda: trained(scaled_and_added, torch.bfloat16, 0.9), lambda: trained(lists, torch.float16, 0.99),
    lambda: trained(part_of_the_way, torch.float32, 0.999), lambda: trained(part_of_the_way_back, torch.bfloat16, 0.9),
    lambda: summed(torch.bfloat16, 10.0, 0.7, in_place=True), lambda: summed(torch.float32, 600.0, 0.7, in_place=False),
    lambda: summed(torch.bfloat16, 600.0, 0.0, in_place=False),
], ids=["float32", "float32 and long", "short", "float16", "a part of the way", "a part of the way back", "a small sum",
        "a float32 sum", "nothing is added"])
def test_averages_and_sums_that_move(told, program):
    assert told(program) == []


def test_looking_changes_nothing(watching):
    def run():
        torch.manual_seed(0)
        weights, average = trained(lerp, torch.bfloat16, 0.99)
        return [*weights, *average, torch.rand(3)]

    plain = run()
    with watching(AveragesProbe):
        seen = run()
    assert all(map(torch.equal, plain, seen))


def test_broken_inputs(told):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(70):
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
            empty, nan = torch.zeros(0), torch.full((40,), float("nan"))
            empty.mul_(0.9).add_(torch.zeros(0), alpha=0.1)
            nan.lerp_(nan, 0.1)
            torch.sparse_coo_tensor([[0]], [1.0], (3,)).mul(0.9)
            empty.add_((empty - torch.zeros(0)) * 0.1)
            nan.sub_((nan - nan) * 0.1)
            (torch.ones(2, 3) - torch.ones(3)).mul_(0.1)
    assert told(program) == []
    assert list(t349_increments_rounded_away.check([Stuck("sum", "float32", 1.0)])) == []
    mode = RoundedAway()
    mode.close()
    mode.open()
    torch.ones(3).add_(torch.ones(3))
    mode.close()
    assert torch._C._len_torch_dispatch_stack() == 0
