"""T405: a divergence that is a sum beside a reconstruction that is a mean dies; with both per sample it lives."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.finding import Bearing  # noqa: E402
from traindx_tools.on_torch.loss_terms.weight import element_weight  # noqa: E402
from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes.loss_terms import LossTermsProbe  # noqa: E402
from traindx_tools.on_torch.rules import t405_term_dies  # noqa: E402
from traindx_tools.on_torch.speed import compilations  # noqa: E402

functional = torch.nn.functional
INPUTS, CODES, ROWS, STEPS = 40, 4, 32, 620


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    monkeypatch.setattr(compilations, "_asked", [])
    if "torch._dynamo.utils" in sys.modules:
        torch._dynamo.utils.counters.clear()


def summed_beside_mean(out, x, mu, logvar):
    reconstruction = functional.mse_loss(out, x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    loss = reconstruction + kl
    return loss  # noqa: RET504 - a variable as programs have it


def both_per_sample(out, x, mu, logvar):
    reconstruction = functional.mse_loss(out, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    loss = reconstruction + kl
    return loss  # noqa: RET504


def factor_makes_up(out, x, mu, logvar):
    reconstruction = functional.mse_loss(out, x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    loss = reconstruction + kl / 40
    return loss  # noqa: RET504


def found(loss_of):
    torch.manual_seed(0)
    encoder, decoder = torch.nn.Linear(INPUTS, 2 * CODES), torch.nn.Linear(CODES, INPUTS)
    basis = torch.randn(3, INPUTS)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-2)
    recorder = SimpleNamespace(rank=0, metrics=lambda *_: None)
    here = Scene(recorder, models=[encoder, decoder], optimizers=[optimizer])
    probe = LossTermsProbe(here)
    for _ in range(STEPS):
        x = 0.5 * torch.randn(ROWS, 3) @ basis
        mu, logvar = encoder(x).chunk(2, 1)
        loss = loss_of(decoder(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), x, mu, logvar)
        optimizer.zero_grad()
        probe.before_backward(loss)
        loss.backward()
        optimizer.step()
        here.step += 1
        probe.after_step(optimizer)
    return [f for f in probe.finish() if f.rule == "T405"]


def test_a_sum_beside_a_mean_is_the_cause_with_its_ratio():
    only, = found(summed_beside_mean)
    assert only.bearing is Bearing.CAUSE
    assert (only.measured["term"], only.measured["other"]) == ("kl", "reconstruction")
    assert only.measured["ratio"] == pytest.approx(INPUTS / 2)  # the 0.5 of the formula counts
    assert only.where.line


@pytest.mark.slow
@pytest.mark.parametrize("loss_of", [both_per_sample, factor_makes_up])
def test_terms_on_one_scale_are_left_alone(loss_of):
    assert found(loss_of) == []


@pytest.mark.parametrize(("make", "weight"), [
    (lambda x: x.sum(), 1.0), (lambda x: x.mean(), 1 / 24), (lambda x: -0.5 * x.pow(2).sum(-1).mean(), 1 / 8),
    (lambda x: functional.mse_loss(x, x.detach() + 1), 1 / 24), (lambda x: functional.l1_loss(x, x.detach()), 1 / 24),
    (lambda x: functional.cross_entropy(x, torch.zeros(4, dtype=torch.long)), 1 / 4),
    (lambda x: functional.binary_cross_entropy_with_logits(x, torch.ones(4, 6), reduction="sum") / 4, 1 / 4),
    (lambda x: x[0, 0], None), (lambda x: (x.mean() * x.sum()), None), (lambda x: torch.ones(()), None)])
def test_the_weight_of_an_element_is_read_from_the_graph(make, weight):
    assert element_weight(make(torch.ones(4, 6, requires_grad=True))) == (weight and pytest.approx(weight))


def test_few_looks_or_terms_that_live_say_nothing():
    dies = [(s, {"kl": v, "rec": 0.5}) for s, v in enumerate([3.0, 0.0005, 0.0004, 0.0003])]
    told = {"kl": 1.0, "rec": 0.01}

    def rules(looks, weights):
        return [f.rule for f in t405_term_dies.check(looks, weights, {}, "test", 0)]

    assert rules(dies, told) == ["T405"]
    assert rules(dies[:3], told) == []
    assert rules([], told) == []
    assert rules(dies, {"kl": 1.0}) == []
    assert rules(dies, {"kl": 1.0, "rec": 1.0}) == []
    improving = [(s, {"kl": v["kl"], "rec": 0.5 / (s + 1)}) for s, v in dies]
    assert rules(improving, told) == [], "a penalty that is fulfilled"
    assert rules([(s, {"kl": float("nan"), "rec": 0.5}) for s, _ in dies], told) == []
