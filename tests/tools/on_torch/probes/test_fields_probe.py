"""Fields that are dropped between rows and batches while something asks for them, and those that nobody misses."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, default_collate

from traindx_tools.on_torch.collated import fields_of
from traindx_tools.on_torch.measures.asked_fields import askings
from traindx_tools.on_torch.probes.fields import FieldsProbe
from traindx_tools.on_torch.rules import t726_field_dropped


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(x)


class Scaled(Net):
    def forward(self, x, weight=None):
        return self.out(x) * (1.0 if weight is None else weight[:, None])


def rows(count=48, constant=False):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(count, 6, generator=random)
    weights = torch.ones(count) if constant else torch.rand(count, generator=random)
    return [{"x": x[i], "y": i % 2, "weight": weights[i].item(), "name": f"row {i}"} for i in range(count)]


def kept(*names):
    return lambda given: default_collate([{k: r[k] for k in names} for r in given])


def by_get(model, batch):
    weight = batch.get("weight")
    loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    return (loss if weight is None else loss * weight).mean()


def by_pop(model, batch):
    weight = batch.pop("weight", None)
    loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    return (loss if weight is None else loss * weight).mean()


def by_in(model, batch):
    loss = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    return (loss * batch["weight"] if "weight" in batch else loss).mean()


def unasked(model, batch):
    return F.cross_entropy(model(batch["x"]), batch["y"])


def asks_something_else(model, batch):
    settings = {"weight": 1.0, "depth": 2}
    return settings.get("weight", 2.0) * F.cross_entropy(model(batch["x"]), batch["y"])


def trained(loss_of, collate, make=Net, data=None, workers=0):
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        for batch in DataLoader(data or rows(), 8, collate_fn=collate, num_workers=workers):
            loss = loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        with watching(FieldsProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize("loss_of", [by_get, by_pop, by_in])
def test_a_field_that_something_asks_for(told, loss_of):
    (found,) = told(lambda: trained(loss_of, kept("x", "y")))
    assert (found.rule, found.measured["field"], found.bearing.value) == ("T726", "weight", "cause")
    assert (found.measured["function"], found.measured["how"]) == (loss_of.__name__, loss_of.__name__[3:])
    assert found.where.line is not None


def test_a_parameter_of_forward_is_a_sign(told):
    (found,) = told(lambda: trained(unasked, kept("x", "y"), Scaled))
    assert (found.measured["kind"], found.bearing.value) == ("parameter", "sign")


def renamed(given):
    out = default_collate([{k: r[k] for k in ("x", "y")} for r in given])
    return {**out, "w": torch.tensor([r["weight"] for r in given])}


@pytest.mark.parametrize("program", [
    lambda: trained(by_get, kept("x", "y", "weight")), lambda: trained(unasked, kept("x", "y")),
    lambda: trained(by_get, renamed), lambda: trained(by_get, kept("x", "y"), data=rows(constant=True)),
    lambda: trained(asks_something_else, kept("x", "y")),
], ids=["kept", "nobody asks", "under another name", "constant", "of a setting"])
def test_fields_that_nobody_misses(told, program):
    assert told(program) == []


def test_watching_changes_nothing(watching):
    plain = trained(by_get, kept("x", "y"))
    with watching(FieldsProbe):
        seen = trained(by_get, kept("x", "y"))
    assert all(map(torch.equal, plain, seen))


def test_broken_inputs(told):
    def program():
        trained(by_get, kept("x", "y"), data=rows(8))  # three batches of one loader each
        list(DataLoader(["a", "b"], 2))
        list(DataLoader([{"x": 1}, {"x": "one"}], 2, collate_fn=list))
    assert [f.measured["batches"] for f in told(program)] == [3]
    assert fields_of([{"x": 1}, {"y": 2}]) == {}
    assert fields_of([1, 2]) == fields_of([]) == {}
    assert askings(compile("a = 1", "<string>", "exec")) == ()
    assert list(t726_field_dropped.check([])) == []
