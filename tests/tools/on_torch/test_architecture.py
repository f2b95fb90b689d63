"""What a model is made of and checks before a long run."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.on_torch.architecture import (  # noqa: E402
    analyze_architecture,
    check_batch_independence,
    check_determinism,
    overfit_one_batch,
)
from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes.architecture import ArchitectureProbe, classes_of  # noqa: E402
from traindx_tools.on_torch.rules import t901_embedding_heavy  # noqa: E402

nn = torch.nn
functional = nn.functional


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=2000, width=32, blocks=1, tie=False):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(width, 2, 64, batch_first=True, dropout=0.0)
                                      for _ in range(blocks)))
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tie:
            self.head.weight = self.tokens.weight

    def forward(self, ids):
        return self.head(self.blocks(self.tokens(ids)))


def test_counts_by_part_and_kind_with_tied_tensors_once():
    model = LanguageModel(tie=True)
    seen = analyze_architecture(model, torch.zeros(1, 4, dtype=torch.long))
    assert seen.parameters == sum(p.numel() for p in model.parameters())
    assert seen.tied == (("tokens.weight", "head.weight"),)
    assert seen.by_part["tokens"] == 64_000
    assert "head" not in seen.by_part
    assert seen.by_kind["embedding"] == 64_000
    assert seen.flops >= 2 * 4 * 32 * 2000
    assert seen.largest[0] == ("tokens.weight", (2000, 32), 64_000)
    assert "tied: tokens.weight = head.weight" in seen.table()
    assert analyze_architecture(nn.ReLU()).parameters == 0


def test_frozen_parameters_are_not_trainable():
    model = LanguageModel()
    model.tokens.weight.requires_grad_(False)
    seen = analyze_architecture(model)
    assert seen.parameters - seen.trainable == 64_000


def test_embeddings_that_are_nearly_everything_are_a_remark_with_their_share():
    (finding,) = analyze_architecture(LanguageModel(tie=True)).findings()
    assert finding.rule == "T901"
    assert finding.where.module == "tokens"
    assert finding.severity.value == "low"
    assert analyze_architecture(LanguageModel(vocabulary=100, blocks=4, tie=True)).findings() == ()


class Mixes(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.linear, self.axis = nn.Linear(4, 4), axis

    def forward(self, x):
        return torch.softmax(self.linear(x), dim=self.axis)


def test_a_softmax_over_the_batch_mixes_samples_and_one_over_classes_does_not():
    x = torch.randn(5, 4)
    (finding,) = check_batch_independence(Mixes(0), x)
    assert finding.rule == "T903"
    assert finding.measured["samples"] == 4
    assert check_batch_independence(Mixes(1), x) == ()


def test_attention_over_samples_is_seen_on_integer_inputs_and_batch_first_is_not():
    model = LanguageModel()
    ids = torch.randint(0, 2000, (4, 6))
    assert check_batch_independence(model, ids) == ()
    model.blocks[0].self_attn.batch_first = False
    assert [f.rule for f in check_batch_independence(model, {"ids": ids})] == ["T903"]


def test_batchnorm_depends_on_the_batch_only_in_training_mode():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    assert check_batch_independence(model, torch.randn(6, 4)) == ()
    assert [f.rule for f in check_batch_independence(model, torch.randn(6, 4), training=True)] == ["T903"]
    with pytest.raises(ValueError, match="at least two samples"):
        check_batch_independence(model, torch.randn(1, 4))


@pytest.mark.slow
def test_a_sound_model_overfits_one_batch_and_one_whose_loss_cannot_see_it_does_not():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    batch = torch.randn(6, 8), torch.arange(6) % 3
    before = [p.clone() for p in model.parameters()]
    good = overfit_one_batch(model, lambda m, b: functional.cross_entropy(m(b[0]), b[1]), batch)
    bad = overfit_one_batch(model, lambda m, b: functional.cross_entropy(torch.softmax(m(b[0] * 0), -1), b[1]), batch)
    assert good.passed
    assert not bad.passed
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_two_runs_from_one_seed_agree_or_the_first_step_and_layer_are_named():
    class Clocked(nn.Module):
        ticks = 0

        def forward(self, x):
            Clocked.ticks += 1
            return x + 1e-3 * Clocked.ticks

    def make(extra):
        model = nn.Sequential(nn.Linear(4, 4), *extra, nn.Linear(4, 1))
        return model, torch.optim.SGD(model.parameters(), 0.1)

    batches = [torch.randn(3, 4) for _ in range(4)]
    assert check_determinism(lambda: make([]), lambda m, b: m(b).mean(), batches).same
    found = check_determinism(lambda: make([Clocked()]), lambda m, b: m(b).mean(), batches)
    assert (found.same, found.step) == (False, 0)


class Notes:
    rank = 0

    def __init__(self):
        self.findings, self.numbers = [], []

    def metrics(self, step, values):
        self.numbers.append((step, dict(values)))

    def finding(self, finding):
        self.findings.append(finding)


def first_steps(scale, loss):
    torch.manual_seed(0)
    model = nn.Linear(16, 10)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    here = Scene(Notes(), models=[model], optimizers=[optimizer])
    probe = ArchitectureProbe(here)
    probe.model_found(model)
    for _ in range(3):
        value = loss(model(torch.randn(32, 16) * scale), torch.randint(0, 10, (32,)))
        optimizer.zero_grad()
        probe.before_backward(value)
        value.backward()
        optimizer.step()
        here.step += 1
        probe.after_step(optimizer)
    return here.recorder


def test_a_first_loss_far_above_ln_classes_is_named():
    (finding,) = first_steps(100.0, functional.cross_entropy).findings
    assert finding.rule == "T902"
    assert finding.measured["classes"] == 10
    assert finding.measured["loss"] > 2 * math.log(10)


def test_a_fresh_classifier_other_losses_and_sums_of_terms_are_left_alone():
    assert first_steps(1.0, functional.cross_entropy).findings == []
    assert first_steps(100.0, lambda out, y: out.square().mean()).findings == []
    assert first_steps(100.0, lambda out, y: functional.cross_entropy(out, y) + out.square().mean()).findings == []
    assert first_steps(1.0, functional.cross_entropy).numbers[0][1]["parameters"] == 170


def test_the_number_of_classes_is_read_from_the_graph():
    logits = torch.randn(2, 7, 5, requires_grad=True)
    assert classes_of(functional.cross_entropy(logits, torch.zeros(2, 5, dtype=torch.long))) == 7
    assert classes_of(logits.sum()) == 0
    assert classes_of(torch.tensor(1.0)) == 0


def test_embeddings_are_weighed_against_all_that_is_trained_with_them():
    alone = analyze_architecture(nn.Embedding(500, 32))
    (finding,) = t901_embedding_heavy.check(alone, "x", beside=66)
    assert finding.measured["trunk"] == 66
    assert not list(t901_embedding_heavy.check(alone, "x", beside=40_000))
