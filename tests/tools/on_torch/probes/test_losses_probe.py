"""What losses are given: each fault of form, its healthy twin, and calls that cannot be measured."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.losses import LossProbe


def train(loss_of, out=4, target=None, steps=12):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, out))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(steps):
        x = torch.randn(32, 8)
        y = x.argmax(1) % 4 if target is None else target(x)
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def binary(x):
    return (x[:, :1] > 0).float()


def counts(x):
    return x[:, :1].exp().round()


def soft(y):
    return (F.one_hot(y, 4) * 3.0).log_softmax(1)


def written_out():
    """A sigmoid that autograd does not know as one."""
    train(lambda z, y: F.binary_cross_entropy_with_logits(1 / (1 + torch.exp(-z)), (y > 0).float()), 4,
          lambda x: x[:, :4])


FAULTY = {
    "probabilities into cross_entropy": lambda: train(lambda z, y: F.cross_entropy(z.softmax(1), y)),
    "scores into nll_loss": lambda: train(F.nll_loss),
    "probabilities into nll_loss": lambda: train(lambda z, y: F.nll_loss(z.softmax(1), y)),
    "wrong axis into nll_loss": lambda: train(lambda z, y: F.nll_loss(z.log_softmax(0), y)),
    "probabilities into kl_div": lambda: train(lambda z, y: F.kl_div(z.softmax(1), soft(y).exp(), reduction="sum")),
    "log target into kl_div": lambda: train(lambda z, y: F.kl_div(z.log_softmax(1), soft(y), reduction="sum")),
    "probabilities as log target into kl_div": lambda: train(
        lambda z, y: F.kl_div(z.log_softmax(1), soft(y).exp(), reduction="sum", log_target=True)),
    "sigmoid into binary_cross_entropy_with_logits": lambda: train(
        lambda z, y: nn.BCEWithLogitsLoss()(z.sigmoid(), y), 1, binary),
    "sigmoid into binary_cross_entropy_with_logits ": written_out,
    "target outside 0-1 into binary_cross_entropy_with_logits": lambda: train(
        lambda z, y: F.binary_cross_entropy_with_logits(z, 2 * y - 1), 1, binary),
    "swapped into binary_cross_entropy": lambda: train(
        lambda z, y: F.binary_cross_entropy(0.8 * y + 0.1, z.sigmoid()), 1, binary),
    "zero-one target into soft_margin_loss": lambda: train(F.soft_margin_loss, 1, binary),
    "one class into cross_entropy": lambda: train(lambda z, y: F.cross_entropy(z, y[:, 0].long() * 0), 1, binary),
    "rates into poisson_nll_loss": lambda: train(lambda z, y: F.poisson_nll_loss(z.exp(), y), 1, counts),
    "several ones a row into cross_entropy": lambda: train(F.cross_entropy, 4, lambda x: (x[:, :4] > 0).float()),
    "relu into cross_entropy": lambda: train(lambda z, y: F.cross_entropy(F.relu(z), y)),
    "scores into ctc_loss": lambda: train(lambda z, y: F.ctc_loss(
        z.view(16, 2, 4), y.view(2, 16)[:, :3] % 3 + 1, torch.full((2,), 16), torch.full((2,), 3))),
}

HEALTHY = {
    "logits": lambda: train(F.cross_entropy),
    "log-probabilities into cross entropy": lambda: train(lambda z, y: F.cross_entropy(z.log_softmax(1), y)),
    "smoothed": lambda: train(lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1)),
    "ignored": lambda: train(lambda z, y: F.cross_entropy(z, y.masked_fill(y == 0, -100))),
    "soft labels": lambda: train(F.cross_entropy, 4, lambda x: x[:, :4].softmax(1)),
    "one-hot": lambda: train(lambda z, y: F.cross_entropy(z, F.one_hot(y, 4).float())),
    "mixed": lambda: train(lambda z, y: F.cross_entropy(z, F.one_hot(y, 4).float().lerp(
        F.one_hot(y.flip(0), 4).float(), 0.3))),
    "masked classes": lambda: train(lambda z, y: F.cross_entropy(torch.cat([z, z[:, :1] - torch.inf], 1), y)),
    "nll": lambda: train(lambda z, y: F.nll_loss(z.log_softmax(1), y)),
    "nll of a part": lambda: train(lambda z, y: F.nll_loss(torch.cat([z, z], 1).log_softmax(1)[:, :4], y)),
    "kl": lambda: train(lambda z, y: F.kl_div(z.log_softmax(1), soft(y).exp(), reduction="sum")),
    "kl of logs": lambda: train(lambda z, y: F.kl_div(z.log_softmax(1), soft(y), reduction="sum", log_target=True)),
    "reverse kl": lambda: train(lambda z, y: F.kl_div(soft(y), z.log_softmax(1), reduction="sum", log_target=True)),
    "bce": lambda: train(F.binary_cross_entropy_with_logits, 1, binary),
    "bce of shares": lambda: train(lambda z, y: F.binary_cross_entropy(z.sigmoid(), y), 1, binary),
    "bce with an ignored value": lambda: train(lambda z, y: (F.binary_cross_entropy_with_logits(
        z, 2 * y - 1, reduction="none") * (y > 0)).mean(), 1, binary),
    "signs": lambda: train(lambda z, y: F.soft_margin_loss(z, 2 * y - 1), 1, binary),
    "ranking with ties": lambda: train(lambda z, y: F.margin_ranking_loss(
        z[:16], z[16:], torch.sign(y[:16] - y[16:])), 1, binary),
    "brier": lambda: train(lambda z, y: F.mse_loss(z.softmax(1), F.one_hot(y, 4).float())),
    "log rates": lambda: train(F.poisson_nll_loss, 1, counts),
    "rates": lambda: train(lambda z, y: F.poisson_nll_loss(z.exp(), y, log_input=False), 1, counts),
    "bf16": lambda: train(lambda z, y: F.nll_loss(z.bfloat16().log_softmax(1), y)),
    "few": lambda: train(lambda z, y: F.cross_entropy(z.softmax(1), y), steps=2),
}


@pytest.mark.parametrize("kind", FAULTY)
def test_what_a_loss_does_not_read_is_named_at_its_line(kind, watching):
    with watching(LossProbe) as seen:
        FAULTY[kind]()
    finding = seen.one("T411")
    assert finding.measured["kind"] == kind.strip()
    assert finding.where.file == __file__
    assert finding.where.line is not None


@pytest.mark.parametrize("name", HEALTHY)
def test_what_a_loss_reads_is_left_alone(name, watching):
    with watching(LossProbe) as seen:
        HEALTHY[name]()
    assert seen.rules == []


def test_values_that_cannot_be_measured_cost_nothing(watching):
    """Of a transform, without values, not finite."""
    with watching(LossProbe) as seen:
        torch.vmap(F.mse_loss)(torch.ones(3, 2), torch.ones(3, 2))
        F.mse_loss(torch.ones(0), torch.ones(0))
        train(lambda z, y: F.cross_entropy(z * torch.nan, y))
    assert seen.rules == []


def test_scripted_modules_and_compiled_signatures_work_under_watch(watching):
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    alone = torch.jit.script(nn.CrossEntropyLoss())(logits, labels)
    with watching(LossProbe):
        assert torch.equal(torch.jit.script(nn.CrossEntropyLoss())(logits, labels), alone)
    assert "cross_entropy" in F.cross_entropy.__name__
    assert not hasattr(F.cross_entropy, "__wrapped__"), "the patch is gone"


def gathered(axis):
    return lambda z, y: -z.log_softmax(axis).gather(1, y[:, None]).mean()


@pytest.mark.parametrize("loss_of", [
    gathered(0), gathered(-2), lambda z, y: -torch.log(z.softmax(0)).gather(1, y[:, None]).mean()])
def test_a_softmax_over_the_batch_is_seen_in_the_graph(watching, loss_of):
    with watching(LossProbe) as seen:
        train(loss_of)
    found = seen.one("T412")
    assert (found.measured["rows"], found.measured["classes"], found.measured["kind"]) == (32, 4, "fits")
    assert "ln(32) = 3.466" in found.statement


@pytest.mark.parametrize("loss_of", [
    gathered(1), F.cross_entropy, lambda z, y: F.cross_entropy(z @ z.T, torch.arange(len(z))),
    lambda z, y: -(z @ z.T).log_softmax(0).diagonal().mean(), lambda z, y: -z[:, :1].log_softmax(0).mean(),
    lambda z, y: (z.mean(1).softmax(0) * y).sum(), lambda z, y: (z.T.softmax(0)[0] - 0.5).square().mean(),
    lambda z, y: z.square().mean(),
])
def test_a_softmax_over_classes_or_of_similarities_is_no_such(watching, loss_of):
    with watching(LossProbe) as seen:
        train(loss_of)
    assert "T412" not in [f.rule for f in seen.findings]


def test_two_passes_are_too_few_and_a_loss_from_elsewhere_is_only_a_sign(watching):
    with watching(LossProbe) as seen:
        train(gathered(0), steps=2)
    assert "T412" not in [f.rule for f in seen.findings]
    with watching(LossProbe) as seen:
        train(lambda z, y: 100 * gathered(0)(z, y))
    assert (seen.one("T412").bearing.value, seen.one("T412").measured["kind"]) == ("sign", "axis")
