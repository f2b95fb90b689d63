"""Codebooks: collapsed, still or revived in vain ones are named; ones in use are left alone."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.on_torch.codes import code_usage, find_codebooks  # noqa: E402
from traindx_tools.on_torch.codes.codebooks import spread_ratio  # noqa: E402
from traindx_tools.on_torch.codes.usage import histogram  # noqa: E402
from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes.codes import CodesProbe  # noqa: E402

nn = torch.nn


class VectorQuantizer(nn.Module):
    """Indices through an embedding; `fault` detaches the codebook's side of the loss."""

    def __init__(self, codes=16, width=4, spread=1.0, fault=None):
        super().__init__()
        self.codebook, self.fault = nn.Embedding(codes, width), fault
        with torch.no_grad():
            self.codebook.weight.mul_(spread)
            if fault == "far":
                self.codebook.weight[1:] += 100

    def forward(self, z):
        indices = torch.cdist(z, self.codebook.weight).argmin(1)
        codes = self.codebook(indices)
        moving = codes.detach() if self.fault == "still" else codes
        loss = (moving - z.detach()).square().mean() + 0.25 * (codes.detach() - z).square().mean()
        return z + (codes - z).detach(), loss


class EMAQuantizer(nn.Module):
    """A moving average with its own sums; `revive` overwrites dead codes, with or without the sums."""

    def __init__(self, codes=16, width=4, revive="whole", every=1):
        super().__init__()
        self.revive, self.every, self.calls = revive, every, 0
        self.register_buffer("embed", torch.randn(codes, width))
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("embed_avg", self.embed.clone())

    def forward(self, z):
        indices = torch.cdist(z, self.embed).argmin(1)
        codes = self.embed[indices]
        if self.training:
            with torch.no_grad():
                hot = nn.functional.one_hot(indices, len(self.embed)).float()
                self.cluster_size.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                self.embed_avg.mul_(0.9).add_(hot.T @ z, alpha=0.1)
                self.embed.copy_(self.embed_avg / self.cluster_size.clamp_min(1e-3)[:, None])
                self.calls += 1
                dead = (self.cluster_size < 0.5) & (self.calls % self.every == 0)
                fresh = z[torch.randint(len(z), (int(dead.sum()),))] + 5
                self.embed[dead] = fresh
                if self.revive == "whole":
                    self.embed_avg[dead], self.cluster_size[dead] = fresh, 1.0
        return z + (codes - z).detach(), indices


class Finite(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = [4, 4]


class FSQ(Finite):
    def forward(self, z):
        q = ((torch.tanh(z[:, :2]) + 1) * 2).floor().clamp(0, 3)
        return z, (q[:, 0] * 4 + q[:, 1]).long()


class Notes:
    rank = 0

    def __init__(self):
        self.findings, self.numbers = [], []

    def metrics(self, step, values):
        self.numbers.append((step, dict(values)))

    def finding(self, finding):
        self.findings.append(finding)


class AutoEncoder(nn.Module):
    def __init__(self, quantizer):
        super().__init__()
        self.encoder, self.quantizer, self.decoder = nn.Linear(8, 4), quantizer, nn.Linear(4, 8)

    def forward(self, x):
        quantized, extra = self.quantizer(self.encoder(x))
        return self.decoder(quantized), extra


def run(quantizer, steps=100, *, evaluate=False):
    torch.manual_seed(0)
    model = AutoEncoder(quantizer)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    here = Scene(Notes(), models=[model], optimizers=[optimizer])
    probe = CodesProbe(here)
    probe.model_found(model)
    model.train(not evaluate)
    for _ in range(steps):
        x = torch.randn(64, 8) * 2
        out, extra = model(x)
        loss = (out - x).square().mean() + (extra if extra.dim() == 0 else 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        here.step += 1
        probe.after_step(optimizer)
    return list(probe.finish()), here.recorder.numbers


def rules(found):
    return sorted(f.rule for f in found)


@pytest.mark.slow
def test_a_codebook_in_use_is_left_alone_and_recorded():
    found, numbers = run(VectorQuantizer())
    assert found == []
    last = numbers[-1][1]
    assert last["codebook_size"] == 16
    assert last["codebook_perplexity"] > 3


@pytest.mark.slow
def test_a_codebook_of_which_one_code_is_chosen_has_collapsed():
    found, _ = run(VectorQuantizer(codes=64, fault="far"))
    assert "T601" in rules(found)
    collapse = next(f for f in found if f.rule == "T601")
    assert collapse.where.module == "quantizer"
    assert collapse.measured["used"] <= 3


@pytest.mark.slow
def test_a_codebook_that_nothing_updates_is_named_and_evaluation_is_left_alone():
    found, _ = run(VectorQuantizer(fault="still"))
    assert "T602" in rules(found)
    assert run(VectorQuantizer(fault="still"), evaluate=True)[0] == []


def test_revivals_that_the_moving_average_undoes_are_told_from_those_that_last():
    undone, _ = run(EMAQuantizer(codes=64, revive="vector only"))
    now_and_then, _ = run(EMAQuantizer(codes=64, revive="vector only", every=10))
    lasting, _ = run(EMAQuantizer(codes=64, revive="whole"))
    assert "T603" in rules(undone)
    assert "T603" in rules(now_and_then)
    assert next(f for f in now_and_then if f.rule == "T603").measured["back"] >= 4
    assert "T603" not in rules(lasting)


def test_finite_scalar_quantisers_are_counted_by_their_levels():
    found, numbers = run(FSQ())
    assert found == []
    assert numbers[-1][1]["codebook_size"] == 16


def test_codebooks_are_found_by_structure_and_weight_quantisation_is_not_one():
    class QuantStub(nn.Module):
        pass

    class VQLayer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Parameter(torch.randn(32, 8))

    model = nn.Sequential(nn.Linear(4, 4), VQLayer(), QuantStub(), nn.Embedding(10, 4))
    (book,) = find_codebooks(model)
    assert (book.path, book.size, book.table_path) == ("1", 32, "embedding")
    assert find_codebooks(nn.Sequential(nn.Linear(4, 4), nn.Embedding(10, 4))) == ()


def test_usage_is_arithmetic_on_the_histogram():
    even = code_usage(torch.full((8,), 10.0))
    assert (even.used, even.perplexity, even.utilisation) == (8, pytest.approx(8.0), pytest.approx(1.0))
    one = code_usage(torch.tensor([80.0] + [0.0] * 7))
    assert (one.used, one.perplexity, one.largest) == (1, pytest.approx(1.0), 1.0)
    assert code_usage(torch.zeros(8)).samples == 0
    counts = histogram(torch.tensor([0, 1, 1, -1, 99]), 4)
    assert counts.tolist() == [1, 2, 0, 0]
    half = code_usage(torch.tensor([2.0] * 50 + [0.0] * 50))
    assert half.utilisation == pytest.approx(50 / (100 * (1 - math.exp(-1))), rel=1e-6)


@pytest.mark.parametrize(("spread", "told"), [(70.0, True), (1.0, False)])
def test_codes_of_another_scale_than_the_outputs(spread, told):
    found, _ = run(VectorQuantizer(codes=64, spread=spread, fault="still"), steps=60)
    scale = [f for f in found if f.rule == "T604"]
    assert bool(scale) == told
    if told:
        assert scale[0].measured["first"] > 20


def test_a_ratio_of_what_does_not_fit_is_none():
    table = torch.randn(16, 4)
    assert spread_ratio(torch.randn(8, 3), table) is None
    assert spread_ratio(torch.zeros(8, 4, dtype=torch.long), table) is None
    assert float(spread_ratio(torch.randn(512, 4) * 0.1, table)) == pytest.approx(10, rel=0.5)
