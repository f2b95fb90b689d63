"""Gradients by module: what vanishes, explodes, is zero, unbalanced or always clipped; healthy twins stay silent."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.gradients import GradientProbe  # noqa: E402
from traindx_tools.on_torch.rules import t201_gradient_explosion, t203_gradient_zero  # noqa: E402
from traindx_tools.on_torch.rules.gradients import GradientCourse  # noqa: E402


def train(model, steps=20, lr=0.01, make=torch.optim.SGD, scale=1.0, clip=None, batch=32, loss_of=None):
    optimizer = make(model.parameters(), lr)
    for step in range(steps):
        x = torch.randn(batch, 16)
        y = x.argmax(-1) % 4
        loss = (loss_of or (lambda out, y, _: F.cross_entropy(out, y)))(model(x), y, step) * scale
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


def deep(activation, gain=None, layers=12):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), activation()) for _ in range(layers)], nn.Linear(16, 4))
    for m in model.modules():
        if isinstance(m, nn.Linear) and gain:
            nn.init.normal_(m.weight, std=gain / 4)
    return model


def test_a_deep_sigmoid_stack_vanishes(watching):
    with watching(GradientProbe) as seen:
        train(deep(nn.Sigmoid))
    found = seen.one("T202")
    assert found.where.module == "0"
    assert found.measured["kind"] == "depth"
    assert found.severity.value == "high"
    assert "12 blocks" in found.statement or "13 blocks" in found.statement


def test_the_same_depth_with_a_fitting_start_does_not(watching):
    with watching(GradientProbe) as seen:
        train(deep(nn.ReLU, 2**0.5))
    assert seen.loud == []


@pytest.mark.parametrize(("layer", "scope"), [(0, "upstream"), (2, "whole")])
def test_dead_units_zero_everything_before_them(layer, scope, watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    nn.init.constant_(model[layer].bias, -100.0)
    with watching(GradientProbe) as seen:
        train(model)
    found = seen.one("T203")
    assert found.measured["scope"] == scope
    assert found.measured["module"] == "0"
    assert found.severity.value == "high"


def test_a_rate_that_is_too_high_explodes(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with watching(GradientProbe) as seen:
        train(model, 12, lr=3.0, loss_of=lambda out, y, _: ((out - y[:, None]) ** 2).mean())
    found = seen.one("T201")
    assert found.measured["kind"] == "ramp"
    assert found.severity.value == "high"


def test_a_summed_loss_that_falls_is_no_alarm(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with watching(GradientProbe) as seen:
        train(model, 40, lr=0.01, make=torch.optim.Adam, scale=1e5)
    assert [f.severity.value for f in seen.findings if f.rule == "T201"] == ["low"]


def test_a_branch_scaled_to_nothing_is_unbalanced(watching):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(16, 4), nn.Linear(16, 4)

        def forward(self, x):
            return self.a(x) + 1e-6 * self.b(x)

    with watching(GradientProbe) as seen:
        train(Two())
    found = seen.one("T204")
    assert (found.measured["module"], found.measured["quiet"]) == ("a", "b")
    assert found.severity.value == "medium"


def test_always_clipped(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with watching(GradientProbe) as seen:
        train(model, 40, scale=1e6, clip=1.0)
    found = seen.one("T206")
    assert found.measured["bound"] == pytest.approx(1.0, rel=1e-3)
    assert found.severity.value == "medium"


def test_a_loss_scale_is_no_explosion(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    with watching(GradientProbe) as seen:
        for _ in range(20):
            x = torch.randn(32, 16)
            loss = F.cross_entropy(model(x), x.argmax(-1) % 4)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert seen.loud == []
    assert max(n["grad_norm"] for _, n in seen.notes.numbers) < 10


def test_norms_by_module_are_recorded(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with watching(GradientProbe) as seen:
        train(model, 3)
    step, numbers = seen.notes.numbers[-1]
    whole = float(torch.cat([p.grad.flatten() for p in model.parameters()]).norm())
    assert step == 3
    assert numbers["grad_norm"] == pytest.approx(whole, rel=1e-4)
    assert numbers["grad_norm/0"] == pytest.approx(float(torch.cat([p.grad.flatten() for p in
                                                                    model[0].parameters()]).norm()), rel=1e-4)


def test_sparse_gradients_and_no_gradients_are_survived(watching):
    table, unused = nn.Embedding(50, 8, sparse=True), nn.Linear(8, 8)
    optimizer = torch.optim.SparseAdam([*table.parameters()], 0.01)
    other = torch.optim.SGD(unused.parameters(), 0.1)
    with watching(GradientProbe) as seen:
        for _ in range(6):
            table(torch.randint(0, 50, (4,))).square().mean().backward()
            optimizer.step()
            other.step()
    assert seen.loud == []


@pytest.mark.parametrize("rule", [t201_gradient_explosion, t203_gradient_zero])
def test_broken_courses_say_nothing(rule):
    """Nothing measured, or nothing finite."""
    for rows in (0, 6):
        nan = np.full((rows, 2), np.nan)
        each = nan[:, 0]
        course = GradientCourse(("a", "b"), tuple(range(rows)), nan, nan, each, each, each, each, False, each)
        assert list(rule.check(course)) == []


@pytest.mark.parametrize(("first", "kinds"), [(True, ["while-scaled"]), (False, [])])
def test_clipping_before_gradients_are_unscaled(first, kinds, watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    with watching(GradientProbe) as seen:
        for _ in range(30):
            x = torch.randn(32, 16)
            loss = F.cross_entropy(model(x), x.argmax(-1) % 4)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            if not first:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            scaler.step(optimizer)
            scaler.update()
    assert [f.measured["kind"] for f in seen.findings if f.severity.value == "high"] == kinds


def test_gradients_that_end_in_nan_are_no_explosion(watching):
    model = nn.Linear(16, 4)
    with watching(GradientProbe) as seen:
        train(model, 12, loss_of=lambda out, y, step: F.cross_entropy(out, y) * (float("nan") if step > 7 else 1.0))
    assert seen.loud == []


@pytest.mark.parametrize("how", ["scale", "data", "foreach", "replace"])
def test_gradients_that_were_changed_after_backward_are_measured_again(how, watching):
    model = nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)

    def change(p):
        if how == "scale":
            p.grad.mul_(0.5)
        elif how == "data":
            p.grad.data.mul_(0.5)
        elif how == "foreach":
            torch._foreach_mul_([p.grad], 0.5)
        else:
            p.grad = p.grad * 0.5

    with watching(GradientProbe, gradients_every=1) as seen:
        for _ in range(30):
            optimizer.zero_grad()
            model(torch.randn(8, 16)).square().mean().backward()
            for p in model.parameters():
                change(p)
            optimizer.step()
    course = seen.probes[0].course(id(optimizer))
    assert np.allclose(course.total[1:], course.unclipped[1:] / 2, rtol=1e-5)
    assert course.weights.shape == course.norms.shape
    assert np.allclose(course.weights, course.weights[0])


def scheduled(rate_of, steps):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 16), torch.randn(32, 4)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate_of(step)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize(("since", "onset", "statement"), [
    (150, "later", "from a step between 127 and 151 on"), (0, "from-start", "in all measured steps")])
def test_a_rate_that_is_zero_while_the_training_goes_on(since, onset, statement, watching):
    with watching(GradientProbe) as seen:
        scheduled(lambda step: 1e-3 if step < since else 0.0, 300)
    found = seen.one("T210")
    assert found.measured["onset"] == onset
    assert statement in found.statement
    assert found.severity.value == "high"


@pytest.mark.slow
def test_a_rate_that_is_zero_long_after_the_settling(watching):
    with watching(GradientProbe) as seen:
        scheduled(lambda step: 1e-3 if step < 1300 else 0.0, 1700)
    assert "from a step between 1202 and 1301 on" in seen.one("T210").statement


@pytest.mark.parametrize("rate_of", [
    lambda step: 1e-3 * (1 - step / 300), lambda step: 1e-3 if step < 290 else 0.0,
    lambda step: 1e-3 * min(1.0, step / 100)], ids=["linear", "ends", "warm-up"])
def test_a_schedule_that_ends_at_zero_or_begins_there_does_not(rate_of, watching):
    with watching(GradientProbe) as seen:
        scheduled(rate_of, 300)
    assert "T210" not in seen.rules


def test_no_gradient_and_a_rate_of_zero_is_not_the_rate(watching):
    with watching(GradientProbe) as seen:
        train(nn.Sequential(nn.Linear(16, 4)), 40, lr=0.0, loss_of=lambda out, y, _: (out * 0).sum())
    assert "T210" not in seen.rules
