"""One call in both modes with dropout off, and twice: what remains, what is written, and what is meant."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.captured_call import CapturedCallProbe


def train(model, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(steps):
        model.train()
        x = torch.randn(12, 8)
        optimizer.zero_grad()
        F.cross_entropy(model(x), x.argmax(1) % 3).backward()
        optimizer.step()


class Scaled(nn.Module):
    """Looks at its mode."""

    def forward(self, x):
        return x if self.training else 2 * x


class Normed(nn.Module):
    """Statistics of its own, which are updated in every mode, or in training alone."""

    def __init__(self, always):
        super().__init__()
        self.always = always
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, x):
        if self.always or self.training:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean


class Attends(nn.Module):
    """Every way of dropping out that is handed a rate."""

    def __init__(self):
        super().__init__()
        self.into, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
        self.mix = nn.MultiheadAttention(16, 2, dropout=0.3, batch_first=True)
        self.rnn = nn.GRU(16, 16, 2, dropout=0.3, batch_first=True)

    def forward(self, x):
        h = F.dropout(self.into(x), 0.2, self.training)[:, None].expand(-1, 3, -1)
        h = self.rnn(self.mix(h, h, h, need_weights=False)[0])[0]
        h = F.scaled_dot_product_attention(h, h, h, None, 0.2 if self.training else 0.0)
        return self.head(F.alpha_dropout(h[:, -1], 0.1, self.training))


def stack(*middle):
    return nn.Sequential(nn.Linear(8, 16), *middle, nn.Tanh(), nn.Linear(16, 3))


def test_a_module_that_looks_at_its_mode_is_a_fact(watching):
    with watching(CapturedCallProbe) as seen:
        train(stack(nn.Dropout(0.3), nn.BatchNorm1d(16), Scaled()))
    finding = seen.one("T338")
    assert (finding.measured["kind"], finding.measured["module"]) == ("code", "3")
    assert finding.where.file.endswith("test_modes_and_twice.py")
    assert seen.loud == []


def test_another_form_in_evaluation(watching):
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = stack()

        def forward(self, x):
            out = self.body(x)
            return out if self.training else (out, out.softmax(-1))

    with watching(CapturedCallProbe) as seen:
        train(Pair())
    assert seen.one("T338").measured["kind"] == "form"


@pytest.mark.parametrize("make", [
    lambda: stack(nn.BatchNorm1d(16)), lambda: stack(nn.Dropout(0.5)), Attends, lambda: stack(Normed(False))],
    ids=["batch norm", "dropout", "attention", "statistics"])
def test_modes_that_differ_by_design(make, watching):
    with watching(CapturedCallProbe) as seen:
        train(make())
    assert [f.rule for f in seen.findings if f.severity.value != "info"] == []
    assert "T339" not in seen.rules


def test_attention_without_dropout_is_the_same_in_both_modes(watching):
    with watching(CapturedCallProbe) as seen:
        train(Attends())
    assert seen.probes[0].answers[0].found["the mode"] is None


def test_statistics_that_evaluation_updates(watching):
    with watching(CapturedCallProbe) as seen:
        train(stack(Normed(True)))
    finding = seen.one("T339")
    assert (finding.measured["kind"], finding.measured["written"]) == ("evaluation", "1.mean")
    assert seen.loud


def test_what_a_training_call_writes_is_a_fact(watching):
    with watching(CapturedCallProbe) as seen:
        train(stack(Normed(False)))
    assert any("writes 1.mean" in r for r in seen.scene.program.remarks)


def test_noise_in_training_is_not_asked(watching):
    class Noisy(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x) if self.training else x

    with watching(CapturedCallProbe) as seen:
        train(stack(Noisy()))
    assert seen.findings == []
    assert "draws" in seen.probes[0].answers[0].not_asked["the mode"]


def test_an_annealed_number_is_missing_in_a_resumed_run(watching):
    class Annealed(nn.Module):
        def __init__(self):
            super().__init__()
            self.heat = 1.0

        def forward(self, x):
            if not self.training:
                return x
            self.heat *= 0.9
            return x / self.heat

    with watching(CapturedCallProbe) as seen:
        train(stack(Annealed()))
    assert seen.one("T336").measured["mode"] == "training"
    assert seen.loud == []
