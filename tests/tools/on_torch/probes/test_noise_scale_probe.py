"""The gradient noise scale against cases whose answer is known: gradients with a known mean and a known variance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.on_torch.measures.noise_scale import NoiseScale, combined, from_norms
from traindx_tools.on_torch.rules import t209_noise_scale

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from traindx_tools.on_torch.noise_scale import gradient_noise_scale  # noqa: E402
from traindx_tools.on_torch.probes.noise_scale import NoiseScaleProbe  # noqa: E402

WIDTH, SIGMA, LENGTH = 50, 2.0, 4.0
"""Loss 0.5 |w - x|^2 with x ~ N(0, SIGMA^2 I) at |w| = LENGTH: the gradient is w - x, |G|^2 = 16, tr(Sigma) = 200."""
EXPECTED = WIDTH * SIGMA**2 / LENGTH**2


class Quadratic(nn.Module):
    def __init__(self, length: float = LENGTH) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.full((WIDTH,), length / math.sqrt(WIDTH)))

    def forward(self, x):
        return 0.5 * (self.w - x).square().sum(-1).mean()


def data(rows):
    return SIGMA * torch.randn(rows, WIDTH)


def train(model, steps, passes, rows, *, scale=1.0, between=None, divide=True):
    """Steps of size zero: the gradient's mean and variance stay what they are."""
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(passes):
            loss = scale * model(data(rows)) / (passes if divide else 1)
            if between:
                between(optimizer)
            loss.backward()
        optimizer.step()


def probe_of(seen):
    return seen.probes[0]


@pytest.fixture
def noise_run(watching):
    """Trains while the probe looks."""

    def watched(training=None, length=LENGTH, **options):
        torch.manual_seed(0)
        with watching(NoiseScaleProbe) as seen:
            training(seen) if training else train(Quadratic(length), **options)
        return seen

    return watched


def test_the_estimators_are_unbiased():
    rng = np.random.default_rng(0)
    g = np.full(WIDTH, LENGTH / math.sqrt(WIDTH))
    pairs = []
    for _ in range(4000):
        x = rng.normal(0, SIGMA, (8, WIDTH))
        pairs.append(from_norms(float(((g - x[:2].mean(0))**2).sum()), float(((g - x.mean(0))**2).sum()), 2, 8))
    noise = combined(pairs, 8)
    assert noise.gradient_square == pytest.approx(LENGTH**2, rel=0.05)
    assert noise.trace == pytest.approx(WIDTH * SIGMA**2, rel=0.05)
    assert noise.scale == pytest.approx(EXPECTED, rel=0.08)


def test_nothing_is_said_where_noise_hides_the_gradient():
    noise = combined([(1.0, 5.0), (-1.2, 5.0), (0.3, 5.0)], 8)
    assert not noise.known
    assert math.isnan(noise.scale)
    assert "not measurable" in noise.in_words
    with pytest.raises(ValueError, match="no pair"):
        combined([], 1)


def test_on_request_it_is_that_of_the_quadratic_and_nothing_changes():
    model, state = Quadratic(), torch.get_rng_state()
    batches = [data(16) for _ in range(64)]
    torch.set_rng_state(state)
    noise = gradient_noise_scale(model, lambda m, x: m(x), batches)
    assert noise.scale == pytest.approx(EXPECTED, rel=0.1)
    assert noise.gradient_square == pytest.approx(LENGTH**2, rel=0.1)
    assert model.w.grad is None
    assert torch.equal(torch.get_rng_state(), state)


def test_running_statistics_and_dropout_leave_no_trace():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    before = [b.clone() for b in model.buffers()]
    state = torch.get_rng_state()
    gradient_noise_scale(model, lambda m, x: m(x).square().mean(), [torch.ones(8, 4) * k for k in range(1, 5)])
    assert all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("batches", [[], [data(8)], [data(8), data(4)], ["text", "text"]])
def test_batches_that_cannot_tell_are_refused(batches):
    with pytest.raises(BadUsage, match="two or more batches of one size"):
        gradient_noise_scale(Quadratic(), lambda m, x: m(x) if isinstance(x, torch.Tensor) else m(data(2)), batches)


def test_a_loss_without_a_graph_is_refused():
    with pytest.raises(BadUsage, match="one number with a graph"):
        gradient_noise_scale(Quadratic(), lambda m, x: m(x).detach(), [data(8), data(8)])


@pytest.mark.parametrize("options", [{}, {"divide": False}, {"passes": 2}], ids=str)
def test_accumulation_shows_it_without_further_passes(options, noise_run):
    seen = noise_run(**{"steps": 40, "passes": 8, "rows": 16, **options})
    noise = probe_of(seen).noise
    assert noise.pairs >= 15
    assert noise.batch == 16 * options.get("passes", 8)
    assert noise.scale == pytest.approx(EXPECTED, rel=0.6)
    assert [v for _, v in seen.notes.numbers if "gradient_noise_scale" in v]


def test_a_loss_scale_that_changes_does_not_matter(noise_run):
    def scaled(seen):
        model = Quadratic()
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        for step in range(20):
            optimizer.zero_grad()
            for _ in range(8):
                loss = model(data(16)) / 8
                factor = 2.0**(step % 12)
                big = loss * factor
                seen.attachment._scaled = (big, loss.detach())
                big.backward()
            optimizer.step()

    noise = probe_of(noise_run(training=scaled)).noise
    assert noise.scale == pytest.approx(EXPECTED, rel=0.6)
    assert noise.gradient_square == pytest.approx(LENGTH**2 / 64, rel=0.5)


def test_one_pass_a_step_measures_nothing(noise_run):
    seen = noise_run(steps=20, passes=1, rows=16)
    assert probe_of(seen).noise is None
    assert seen.findings == []


def test_gradients_thrown_away_or_kept_are_no_accumulation(noise_run):
    assert probe_of(noise_run(steps=20, passes=4, rows=8, between=lambda o: o.zero_grad())).noise is None

    def kept(_):
        model = Quadratic()
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        for _ in range(10):
            for _ in range(4):
                model(data(8)).backward()
            optimizer.step()

    assert probe_of(noise_run(training=kept)).noise is None


def test_micro_batches_of_several_sizes_are_left_out(noise_run):
    def ragged(_):
        model = Quadratic()
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        for _ in range(10):
            optimizer.zero_grad()
            for rows in (8, 8, 5):
                model(data(rows)).backward()
            optimizer.step()

    assert probe_of(noise_run(training=ragged)).noise is None


@pytest.mark.parametrize(("length", "rows", "kind"), [(40.0, 64, "far-above"), (4.0, 4, None)])
def test_a_batch_far_from_it_is_a_remark(length, rows, kind, noise_run):
    seen = noise_run(steps=40, passes=8, rows=rows, length=length)
    assert [f.measured["kind"] for f in seen.findings] == ([kind] if kind else [])
    assert seen.loud == []
    assert all(f.severity.value == "info" for f in seen.findings)


def test_far_below_is_a_remark_and_few_measurements_are_none():
    (found,) = t209_noise_scale.check(NoiseScale(1.0, 2000.0, 0.1, 32, 20), 100)
    assert found.measured["kind"] == "far-below"
    assert "2e+03 samples" in found.statement
    assert list(t209_noise_scale.check(NoiseScale(1.0, 2000.0, 0.1, 32, 5), 100)) == []
    assert list(t209_noise_scale.check(NoiseScale(-1.0, 2000.0, 0.1, 32, 20), 100)) == []
