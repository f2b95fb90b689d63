"""One step on copies: what the loss depends on, how its terms pull, half precision, averages; faults and twins."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.snapshot import SnapshotProbe
from traindx_tools.on_torch.probes.step_copy import StepCopyProbe

pytestmark = pytest.mark.slow

STEPS = 33


def train(model, loss_of, steps=STEPS, data=None, optimizer=None, after=None):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for step in range(steps):
        loss = loss_of(model, step, *(data or batch)())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if after is not None:
            after(model)
        losses.append(loss.item())
    return losses


def batch():
    x = torch.randn(12, 6)
    return x, torch.randn(12, 4), (x[:, 0] > 0).long()


class TwoHeads(nn.Module):
    def __init__(self, columns=6):
        super().__init__()
        self.columns = columns
        self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(4, 2)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, condition):
        x = torch.cat([x[:, :self.columns], torch.zeros_like(x[:, self.columns:])], 1)
        return self.b(self.drop(F.relu(self.a(x)))), self.c(condition)


def first_head(model, step, x, condition, y):
    return F.cross_entropy(model(x, condition)[0], y)


def both_heads(model, step, x, condition, y):
    a, b = model(x, condition)
    return F.cross_entropy(a, y) + F.cross_entropy(b, y)


def weighted_by_ones(model, step, x, condition, y):
    """Weights that are all 1, and an identifier that is handed on: neither is an input."""
    return (F.cross_entropy(model(x, torch.arange(12))[0], y, reduction="none") * torch.ones(12)).mean()


class HandsOn(TwoHeads):
    def forward(self, x, condition):
        return super().forward(x, torch.zeros(12, 4))[0], condition


# ---- what the loss depends on


def found(seen, rule, kind):
    return [f for f in seen.findings if f.rule == rule and f.measured["kind"] == kind]


def test_an_argument_that_the_loss_ignores(watching):
    with watching(StepCopyProbe) as seen:
        train(TwoHeads(), first_head)
    assert [f.measured["arguments"] for f in found(seen, "T331", "loss")] == ["condition"]
    assert seen.loud == []


def test_columns_that_are_cut_off(watching):
    with watching(StepCopyProbe) as seen:
        train(TwoHeads(4), both_heads)
    (finding,) = found(seen, "T331", "elements")
    assert (finding.measured["elements"], finding.measured["of"]) == (2, 6)
    assert finding.severity.value == "info"


def cropped(model, step, x, condition, y):
    return F.cross_entropy(model(x), y)


@pytest.mark.parametrize("training", [
    lambda: train(TwoHeads(), both_heads),
    lambda: train(HandsOn(), weighted_by_ones),
    lambda: train(nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)), cropped,
                  data=lambda: (torch.randn(12, 1, 10, 10), None, torch.randint(0, 2, (12,))))],
    ids=["both", "handed on", "stride"])
def test_inputs_by_design(training, watching):
    with watching(StepCopyProbe) as seen:
        training()
    assert seen.rules == []
    assert seen.probes[0].not_asked == ""


def policy():
    """The ratio is 1 before the first update: the loss does not change with the states, its gradient does."""
    def loss(model, step, x, condition, y):
        chosen = F.log_softmax(model(x), -1).gather(1, y[:, None])[:, 0]
        return -((chosen - chosen.detach()).exp() * torch.linspace(-1, 1, 12)).mean()

    train(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)), loss)


def test_a_loss_that_is_constant_and_has_a_gradient(watching):
    with watching(StepCopyProbe) as seen:
        policy()
    assert seen.rules == []


# ---- terms


def with_term(term):
    def loss(model, step, x, condition, y):
        out = model(x)
        fit = F.cross_entropy(out, y)
        extra = term(out, step)
        return fit + extra

    return lambda: train(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)), loss)


def rounded(out, step):
    return (3 * out).round().square().mean() + 1


def swamping(out, step):
    return 1e5 * (out - 1e-7).square().mean()


TERMS = {"a rounding": (rounded, "T402", "no-gradient")}
QUIET = {
    "free bits": lambda out, step: out.square().mean().clamp(min=50.0),
    "a warm-up": lambda out, step: 1e-6 * (step + 1) * out.square().mean(),
    "a regulariser": lambda out, step: 1e-5 * out.square().mean(),
    "off": lambda out, step: 0.0 * out.square().mean(),
}


@pytest.mark.parametrize("case", TERMS)
def test_a_term_without_a_gradient(case, watching):
    term, rule, kind = TERMS[case]
    with watching(StepCopyProbe) as seen:
        with_term(term)()
    assert found(seen, rule, kind)
    assert seen.loud


def test_a_term_whose_gradient_is_swamped_though_its_value_is_not(watching):
    def loss(model, step, x, condition, y):
        out = model(x)
        sharp = F.cross_entropy(out, y)
        offset = 0.5 + 1e-5 * out.square().mean()
        return sharp + offset

    with watching(StepCopyProbe) as seen:
        train(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)), loss)
    finding = seen.one("T404")
    assert finding.measured["ratio"] > 1000
    assert finding.severity.value == "low"


@pytest.mark.parametrize("case", QUIET)
def test_terms_by_design(case, watching):
    with watching(StepCopyProbe) as seen:
        with_term(QUIET[case])()
    assert {f.severity.value for f in seen.findings} <= {"info"}


# ---- half precision


def half(dtype, scale=1.0, wide=1.0):
    def loss(model, step, x, condition, y):
        with torch.autocast("cpu", dtype=dtype):
            return F.cross_entropy(model(x), y) * scale

    model = nn.Sequential(nn.Linear(6, 16), nn.Sigmoid(), nn.Linear(16, 2))
    with torch.no_grad():
        model[0].weight *= wide
    return lambda: train(model, loss, steps=5)


@pytest.mark.parametrize(("options", "kind", "module"), [
    ({"scale": 1e-6}, "underflow", "0"), ({"wide": 1.4e5}, "overflow", "0")])
def test_half_precision_that_changes_the_step(options, kind, module, watching):
    with watching(StepCopyProbe) as seen:
        half(torch.float16, **options)()
    measured = seen.one("T954").measured
    assert (measured["kind"], measured["module"]) == (kind, module)


@pytest.mark.parametrize(("dtype", "scale"), [(torch.bfloat16, 1.0), (torch.float16, 1.0), (torch.bfloat16, 1e-6)])
def test_half_precision_as_usual_is_a_fact(dtype, scale, watching):
    with watching(StepCopyProbe) as seen:
        half(dtype, scale)()
    assert seen.rules == []
    assert any("against single precision" in r for r in seen.scene.program.remarks)


# ---- averages


def averaged(make):
    model = nn.Linear(6, 2)
    target = make(model)

    def follow(_):
        with torch.no_grad():
            for t, p in zip(target.parameters(), model.parameters(), strict=True):
                t.mul_(0.99).add_(p, alpha=0.01)

    return train(model, lambda m, s, x, c, y: F.cross_entropy(m(x), y), after=follow)


def test_an_average_that_is_the_trained_model(watching):
    with watching(StepCopyProbe) as seen:
        averaged(lambda m: m)
    assert seen.one("T341").measured["kind"] == "averaged-with-itself"


def test_an_average_of_its_own(watching):
    with watching(StepCopyProbe) as seen:
        averaged(copy.deepcopy)
    assert seen.rules == []


# ---- the program cannot tell


class Draws(nn.Module):
    """Statistics, a counter and random numbers of every kind."""

    def __init__(self):
        super().__init__()
        self.norm, self.head, self.calls = nn.BatchNorm1d(6), nn.Linear(6, 2), 0
        self.told = []

    def forward(self, x):
        self.calls += 1
        self.told.append(float(x.sum()))
        noise = torch.randn(x.shape) + random.random() + np.random.rand()
        return self.head(F.dropout(self.norm(x) + 0.1 * noise, 0.3, self.training))


def observed(kinds, watching):
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    model = Draws()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    def run():
        return train(model, lambda m, s, x, c, y: F.cross_entropy(m(x), y) + 1e-3 * m.head.weight.square().sum(),
                     optimizer=optimizer)

    if kinds:
        with watching(*kinds) as seen:
            losses = run()
        assert seen.probes[-1].not_asked == "" or len(kinds) > 1
    else:
        losses = run()
    state = [t.clone() for t in (*model.state_dict().values(), *(v for s in optimizer.state.values()
                                                                 for v in s.values()))]
    return losses, state, model.calls, model.told, torch.rand(3).tolist(), random.random(), np.random.rand()


@pytest.mark.parametrize("kinds", [(StepCopyProbe,), (SnapshotProbe, StepCopyProbe)])
def test_nothing_is_changed(kinds, watching):
    alone, watched = observed((), watching), observed(kinds, watching)
    assert alone[0] == watched[0]
    assert all(map(torch.equal, alone[1], watched[1]))
    assert alone[2:] == watched[2:]


def test_what_cannot_be_repeated_is_left_alone(watching):
    """A hidden state that is carried: the step that is made again is another one."""
    class Carried(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head, self.hidden = nn.GRUCell(6, 8), nn.Linear(8, 2), None

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden.detach() if self.hidden is not None else None)
            return self.head(self.hidden)

    with watching(StepCopyProbe) as seen:
        train(Carried(), lambda m, s, x, c, y: F.cross_entropy(m(x), y))
    assert seen.rules == []
    assert seen.probes[0].not_asked


def test_an_error_in_a_noted_step(watching):
    def loss(model, step, x, condition, y):
        if step == 2:
            raise RuntimeError("a broken batch")
        return F.cross_entropy(model(x), y)

    with pytest.raises(RuntimeError, match="a broken batch"), watching(StepCopyProbe):
        train(nn.Linear(6, 2), loss)
    assert torch._C._len_torch_dispatch_stack() == 0
