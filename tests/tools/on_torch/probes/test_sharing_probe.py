"""Objects that should be two and are one, and those that share on purpose."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.sharing import SharingProbe


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def batch():
    x = torch.randn(12, 6)
    return x, x.argmax(1) % 3


def two_optimizers(*, apart, clear, steps=8):
    """A trunk in both; `apart`: a backward pass each, `clear`: gradients are set back between."""
    trunk, one, two = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 1)
    a = torch.optim.Adam([*trunk.parameters(), *one.parameters()])
    b = torch.optim.Adam([*trunk.parameters(), *two.parameters()])
    for _ in range(steps):
        x, y = batch()
        if apart:
            for optimizer in (a, b):
                optimizer.zero_grad()
                h = trunk(x)
                (F.cross_entropy(one(h), y) if optimizer is a else two(h).square().mean()).backward()
                optimizer.step()
            continue
        h = trunk(x)
        (F.cross_entropy(one(h), y) + two(h).square().mean()).backward()
        a.step()
        if clear:
            a.zero_grad()
        b.step()
        a.zero_grad()
        b.zero_grad()


def with_teacher(make, steps=8):
    model = net()
    teacher = make(model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x, y = batch()
        with torch.no_grad():
            told = teacher(x)
        loss = F.cross_entropy(model(x), y) + F.mse_loss(model(x), told)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def synced(make, every=2, steps=8):
    """A target network that takes the state of the trained one now and then."""
    model = net()
    target = make(model)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step % every == 0:
            target.load_state_dict(model.state_dict())


FAULTY = {
    "one gradient, two steps": (lambda: two_optimizers(apart=False, clear=False), "same-gradient"),
    "a teacher that is a shallow copy": (lambda: with_teacher(copy.copy), "model"),
    "a target that is the model": (lambda: synced(lambda m: m), "loaded-from-itself"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_seen(case, watching):
    training, kind = FAULTY[case]
    with watching(SharingProbe) as seen:
        training()
    finding = seen.one("T341")
    assert finding.measured["kind"] == kind
    assert seen.loud


def test_a_trunk_that_two_optimizers_train_in_turns_is_a_fact(watching):
    with watching(SharingProbe) as seen:
        two_optimizers(apart=True, clear=False)
    assert seen.one("T341").measured["kind"] == "optimizers"
    assert seen.loud == []


def test_a_second_handle_that_is_evaluated_is_a_fact(watching):
    with watching(SharingProbe) as seen:
        model = net()
        view = copy.copy(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(8):
            x, y = batch()
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            view(batch()[0])
    assert seen.one("T341").measured["kind"] == "view"
    assert seen.loud == []


class Sharpness(torch.optim.Optimizer):
    """Steps another optimizer inside of its own step, over the same parameters."""

    def __init__(self, parameters, base):
        super().__init__(list(parameters), {})
        self.base = base

    def step(self, closure=None):
        self.base.step()


def wrapped_optimizer():
    model = net()
    optimizer = Sharpness(model.parameters(), torch.optim.SGD(model.parameters(), 0.1))
    for _ in range(8):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def one_after_the_other():
    model = net()
    for kind in (torch.optim.Adam, torch.optim.SGD):
        optimizer = kind(model.parameters(), 1e-2)
        for _ in range(6):
            x, y = batch()
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def encoder_alone():
    """The encoder is called by itself as well: one holds the other."""
    encoder = nn.Linear(6, 8)
    model = nn.Sequential(encoder, nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(8):
        x, y = batch()
        with torch.no_grad():
            encoder(x)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize("training", [
    wrapped_optimizer, one_after_the_other, encoder_alone, lambda: with_teacher(copy.deepcopy),
    lambda: synced(copy.deepcopy)], ids=["inside", "after", "encoder", "teacher", "target"])
def test_shares_on_purpose(training, watching):
    with watching(SharingProbe) as seen:
        training()
    assert seen.rules == []


def test_a_state_that_is_no_mapping_breaks_nothing(watching):
    with watching(SharingProbe) as seen:
        model = net()
        with pytest.raises(TypeError):
            model.load_state_dict(3)
        two_optimizers(apart=False, clear=True)
    assert seen.loud == []
