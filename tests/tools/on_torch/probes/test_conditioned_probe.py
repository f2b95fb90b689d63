"""What generation begins from against training at the same step: schedules that fit, that do not, and other chains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from traindx_tools.on_torch.measures.conditioned import Seen, judged
from traindx_tools.on_torch.probes.conditioned import ConditionedProbe, conditioned

STEPS = 40


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)

    def forward(self, x, t):
        return self.net(torch.cat([x, t[:, None].float() / STEPS], 1))


def left(end):
    """The share of the signal at each step of a linear schedule."""
    return torch.cumprod(1 - torch.linspace(1e-4, end, STEPS), 0)


def diffusion(end, backwards=False, scale=1.0, first=None, steps=40):
    """Trains on data around (2, -1), then generates 300 examples from pure noise."""
    model, kept = Denoiser(), left(end)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(steps):
        x0 = torch.tensor([2.0, -1.0]) + 0.5 * torch.randn(128, 2)
        t = torch.randint(STEPS, (128,))
        a, noise = kept[t][:, None], torch.randn(128, 2)
        given = scale * (a.sqrt() * x0 + (1 - a).sqrt() * noise)
        optimizer.zero_grad()
        (model(given, STEPS - 1 - t if backwards else t) - noise).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        x = torch.randn(300, 2)
        for step in reversed(range(STEPS if first is None else first)):
            x = x - 0.05 * model(x, torch.full((300,), step))


@pytest.fixture
def told(watching):
    """What is told of a program: kinds."""
    def told(program):
        with watching(ConditionedProbe) as seen:
            program()
        return [f.measured["kind"] for f in seen.findings]
    return told


@pytest.mark.parametrize(("options", "kind"), [
    ({"end": 0.02}, "mean"),  # for 1000 steps
    ({"end": 0.3, "backwards": True}, "mean"),
    ({"end": 0.3, "scale": 4.0}, "scale"),
    ({"end": 0.3, "first": 2 * STEPS}, "beyond"),
], ids=["schedule", "backwards", "scale", "beyond"])
def test_starts_that_training_never_had(told, options, kind):
    assert told(lambda: diffusion(**options)) == [kind]


def test_a_schedule_that_ends_in_noise_is_left_alone(told):
    assert told(lambda: diffusion(0.3)) == []


def test_evaluations_in_any_order_and_models_without_a_step_are_no_generations(told):
    def shuffled():
        diffusion(0.02, steps=40, first=1)
        model = Denoiser()
        with torch.no_grad():
            for step in torch.randperm(STEPS):
                model(torch.randn(64, 2), torch.full((64,), int(step)))

    def plain():
        model = nn.Linear(2, 2)
        model(torch.randn(8, 2)).mean().backward()
        with torch.no_grad():
            model(torch.randn(8, 2))

    assert told(shuffled) == []
    assert told(plain) == []


def test_pictures_sequences_and_other_arguments():
    x, t = torch.randn(4, 3, 8, 8), torch.arange(4)
    assert conditioned({"x": x, "t": t}) == (x, t)
    assert conditioned({"x": x, "classes": torch.ones(5)}) is None
    assert conditioned({"ids": torch.ones(4, 7, dtype=torch.long), "t": t}) is None
    assert conditioned({}) is None


def test_too_little_and_values_that_never_vary_say_nothing():
    assert judged(Seen()) is None
    seen = Seen(values=[np.zeros(100)], features=[np.zeros((100, 2))], squares=[np.ones(100)],
                calls=[(float(i), np.zeros((70, 2)), np.ones(70), 1) for i in range(20)])
    assert judged(seen) is None
