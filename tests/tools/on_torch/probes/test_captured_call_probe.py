"""What a model's output depends on, asked of a copy: each fault, its healthy twin, and models that cannot be asked."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.captured_call import CapturedCallProbe

WIDTH, WORDS, LENGTH = 16, 30, 12


def train(model, batch, loss_of, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(steps):
        model.train()
        *inputs, target = batch()
        loss = loss_of(model(*inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def text():
    ids = torch.randint(1, WORDS, (6, LENGTH + 1))
    return ids[:, :-1], ids[:, 1:]


def next_word(out, target):
    return F.cross_entropy(out.reshape(-1, WORDS), target.reshape(-1))


class Language(nn.Module):
    """Attention over earlier positions, with a mask that the test chooses."""

    def __init__(self, mask):
        super().__init__()
        self.table, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.qkv, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WORDS)
        self.mask = mask

    def forward(self, ids):
        x = self.table(ids) + self.place(torch.arange(ids.shape[1]))
        q, k, v = self.qkv(x).chunk(3, -1)
        allowed = self.mask(torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool))
        return self.head(x + F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))


class Recurrent(nn.Module):
    def __init__(self, both_ways):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=both_ways)
        self.head = nn.Linear(WIDTH * (1 + both_ways), WORDS)

    def forward(self, ids):
        return self.head(self.rnn(self.table(ids))[0])


def language(mask):
    return lambda: train(Language(mask), text, next_word)


def recurrent(both_ways):
    return lambda: train(Recurrent(both_ways), text, next_word)


def masked_words():
    """Both ways on purpose: the target is the word at the same place."""
    def batch():
        ids = torch.randint(1, WORDS, (6, LENGTH))
        hidden = torch.rand(ids.shape) < 0.3
        return ids.masked_fill(hidden, 0), ids.masked_fill(~hidden, -100)

    train(Recurrent(True), batch, next_word)


def classes():
    x = torch.randn(12, 8)
    return x, x.argmax(1) % 3


def classify(model, batch=classes):
    return lambda: train(model(), batch, F.cross_entropy)


class OverTheBatch(nn.Module):
    """Attention whose sequence axis is the batch."""

    def __init__(self):
        super().__init__()
        self.into, self.mix, self.head = nn.Linear(8, WIDTH), nn.MultiheadAttention(WIDTH, 2), nn.Linear(WIDTH, 3)

    def forward(self, x):
        x = self.into(x)
        return self.head(self.mix(x, x, x, need_weights=False)[0].relu())


class Conditioned(nn.Module):
    def __init__(self, used):
        super().__init__()
        self.body, self.condition = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), nn.Embedding(4, 3)
        self.used = used

    def forward(self, x, kind):
        shift = self.condition(kind)
        return self.body(x) + (shift if self.used else 0 * 1.0)


def conditioned(used):
    def batch():
        x = torch.randn(12, 8)
        return x, torch.randint(0, 4, (12,)), x.argmax(1) % 3

    return lambda: train(Conditioned(used), batch, F.cross_entropy)


class Overwritten(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.body(torch.ones_like(x))


class Functional(nn.Module):
    def __init__(self, always):
        super().__init__()
        self.one, self.two, self.always = nn.Linear(8, 16), nn.Linear(16, 3), always

    def forward(self, x):
        return self.two(F.dropout(self.one(x).relu(), 0.5, training=self.always or self.training))


class Sampler(nn.Module):
    """A latent that is drawn in evaluation as well."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 16), nn.Linear(8, 3)

    def forward(self, x):
        mean, log = self.one(F.dropout(x, 0.1, self.training)).chunk(2, -1)
        return self.two(mean + torch.randn_like(mean) * log.exp())


class Padded(nn.Module):
    def __init__(self, masks):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.mix, self.head = nn.MultiheadAttention(WIDTH, 2, batch_first=True), nn.Linear(WIDTH, 5)
        self.masks = masks

    def forward(self, ids):
        x = self.table(ids) + 0.1
        return self.head(self.mix(x, x, x, key_padding_mask=ids == 0 if self.masks else None, need_weights=False)[0])


def padded(masks):
    def batch():
        ids = torch.randint(1, WORDS, (8, LENGTH))
        gone = torch.arange(LENGTH)[None] >= torch.randint(4, LENGTH, (8, 1))
        return ids.masked_fill(gone, 0), (ids % 5).masked_fill(gone, -100)

    return lambda: train(Padded(masks), batch, lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten()))


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


class Standardised(nn.Module):
    """Running statistics of its own, in an attribute or in a buffer."""

    def __init__(self, registered):
        super().__init__()
        self.body = mlp()
        if registered:
            self.register_buffer("mean", torch.zeros(8))
        else:
            self.mean = torch.zeros(8)
        self.last = torch.zeros(3)

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * (x.mean(0) + 1.0)
        out = self.body(x - self.mean)
        self.last = out.detach().mean(0)
        return out


def saved(model, tmp_path):
    made = model()
    train(made, classes, F.cross_entropy)
    torch.save(made.state_dict(), tmp_path / "m.pt")


def same_layer():
    return nn.Sequential(nn.Linear(8, 8), *[nn.Sequential(nn.Linear(8, 8), nn.ReLU())] * 3, nn.Linear(8, 3))


class Gated(nn.Module):
    """A residual block behind a gate of zero."""

    def __init__(self):
        super().__init__()
        self.first, self.inner, self.outer, self.last = (nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 16),
                                                         nn.Linear(16, 3))
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        h = self.first(x)
        return self.last(h + self.gate * self.outer(self.inner(h).relu()))


FAULTY = {
    "no mask": (language(lambda ones: ones), "T332", "all"),
    "one too far": (language(lambda ones: ones.tril(1)), "T332", "next"),
    "upside down": (language(lambda ones: ones.triu()), "T332", "inverted"),
    "both ways": (recurrent(True), "T332", "all"),
    "attention over the batch": (classify(OverTheBatch), "T903", None),
    "condition not used": (conditioned(False), "T331", "argument"),
    "input overwritten": (classify(Overwritten), "T331", "input"),
    "no activation": (classify(lambda: nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 16), nn.Dropout(0.1),
                                                     nn.Linear(16, 3))), "T334", "bare"),
    "a branch that is switched off": (classify(Gated), "T334", "unreached"),
    "dropout always on": (classify(lambda: Functional(True)), "T335", None),
    "one layer three times": (classify(same_layer), "T337", None),
    "padding attended to": (padded(False), "T333", "no-mask"),
}

HEALTHY = {
    "causal": language(lambda ones: ones.tril()),
    "one way": recurrent(False),
    "masked words": masked_words,
    "classifier": classify(mlp),
    "conditioned": conditioned(True),
    "a linear probe": classify(lambda: nn.Linear(8, 3)),
    "a bottleneck": classify(lambda: nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 3))),
    "dropout": classify(lambda: Functional(False)),
    "a latent": classify(Sampler),
    "padding masked": padded(True),
    "batch norm": classify(lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_wrong_dependence_is_named(name, watching):
    program, rule, kind = FAULTY[name]
    with watching(CapturedCallProbe) as seen:
        program()
    finding = seen.one(rule)
    assert finding.measured.get("kind") == kind
    assert seen.rules == [rule]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_right_dependence_is_left_alone(name, watching):
    with watching(CapturedCallProbe) as seen:
        HEALTHY[name]()
    assert seen.findings == []
    assert seen.probes[0].answers, "it was asked"


def test_state_outside_of_the_checkpoint_is_named_where_somebody_saves(watching, tmp_path):
    with watching(CapturedCallProbe) as seen:
        saved(lambda: Standardised(False), tmp_path)
    assert seen.one("T336").measured["attribute"] == "mean"
    assert seen.one("T336").severity.value == "high"
    with watching(CapturedCallProbe) as seen:
        saved(lambda: Standardised(True), tmp_path)
    assert seen.findings == []
    with watching(CapturedCallProbe) as seen:
        train(Standardised(False), classes, F.cross_entropy)
    assert seen.loud == []


def test_a_hidden_state_that_is_carried_on_is_left_alone(watching, tmp_path):
    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head, self.hidden = nn.GRUCell(8, WIDTH), nn.Linear(WIDTH, 3), torch.zeros(12, WIDTH)

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden[:len(x)].detach())
            return self.head(self.hidden)

    with watching(CapturedCallProbe) as seen:
        saved(Stateful, tmp_path)
    assert seen.findings == []


def test_time_first_is_no_mixing_of_samples(watching):
    class TimeFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(8, WIDTH), nn.Linear(WIDTH, 3)

        def forward(self, x):
            return self.head(self.rnn(x)[0])

    with watching(CapturedCallProbe) as seen:
        train(TimeFirst(), lambda: (torch.randn(9, 5, 8), torch.randint(0, 3, (9, 5))),
              lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten()))
    assert seen.findings == []


class Counting(nn.Module):
    """Everything that a call may change beside its output."""

    def __init__(self, generator):
        super().__init__()
        self.body, self.norm = mlp(), nn.BatchNorm1d(3)
        self.calls, self.seen, self.generator = 0, [], generator
        self.note = type("Note", (), {})()
        self.note.calls = 0

    def forward(self, x):
        self.calls += 1
        self.note.calls += 1
        self.seen.append(self.calls)
        COUNTS["calls"] += 1
        x = x + 0.01 * float(self.generator.normal()) + 0.01 * random.random() + 0.01 * torch.rand(1)
        return self.norm(self.body(x + 0.01 * float(GENERATOR.normal()) + 1e-3 * self.note.calls + 1e-3 * self.calls))


COUNTS = {"calls": 0}
GENERATOR = np.random.default_rng(0)


def run(steps=6):
    torch.manual_seed(5)
    random.seed(5)
    GENERATOR.bit_generator.state = np.random.default_rng(7).bit_generator.state
    COUNTS["calls"] = 0
    model = Counting(np.random.default_rng(3))
    losses = train(model, classes, F.cross_entropy, steps)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    return losses, state, model.calls, list(model.seen), model.note.calls, COUNTS["calls"], GENERATOR.normal()


def test_the_program_cannot_tell(watching):
    """Losses, weights, statistics, counters and every generator are bit by bit what they are without."""
    alone = run()
    with watching(CapturedCallProbe) as seen:
        watched = run()
    assert seen.probes[0].answers[0].found, "the questions were asked"
    assert watched[0] == alone[0]
    assert all(torch.equal(alone[1][k], v) for k, v in watched[1].items())
    assert watched[2:] == alone[2:]


def test_models_that_cannot_be_asked_say_why(watching):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.stream = mlp(), iter([1, 2, 3])

        def forward(self, x):
            return self.body(x)

    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = mlp()

        def forward(self, x):
            if not self.training:
                raise ValueError("no evaluation here")
            return self.body(x)

    for model, why in ((Odd(), "cannot be set back"), (Failing(), "no evaluation here")):
        with watching(CapturedCallProbe) as seen:
            train(model, classes, F.cross_entropy)
        assert seen.findings == []
        assert why in seen.probes[0].answers[0].text


def test_a_single_sample_is_not_asked(watching):
    with watching(CapturedCallProbe) as seen:
        train(mlp(), lambda: (torch.randn(1, 8), torch.tensor([1])), F.cross_entropy)
    assert seen.findings == []
    assert "single sample" in seen.probes[0].answers[0].text


def test_a_copy_leaves_no_gradient_and_no_hook(watching):
    model = mlp()
    before = copy.deepcopy(model.state_dict())
    with watching(CapturedCallProbe):
        model.train()(torch.randn(4, 8)).sum().backward()
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(not m._forward_hooks for m in model.modules())


class Sorted(nn.Module):
    """A recurrent model that sorts by length; `back`: how it puts its rows back."""

    def __init__(self, back):
        super().__init__()
        self.cell, self.head, self.back = nn.GRU(WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, 4), back

    def forward(self, x, lengths):
        order = torch.argsort(lengths, descending=True, stable=True)
        packed = nn.utils.rnn.pack_padded_sequence(x[order], lengths[order].cpu(), batch_first=True)
        return self.back(self.head(self.cell(packed)[1][-1]), order, x)


def sequences():
    return torch.randn(6, LENGTH, WIDTH), torch.tensor([4, 9, 6, 12, 5, 8]), torch.randint(0, 4, (6,))


@pytest.mark.parametrize("back", [lambda out, order, x: out[order], lambda out, order, x: out], ids=["twice", "not"])
def test_rows_that_come_back_in_another_order(watching, back):
    with watching(CapturedCallProbe) as seen:
        train(Sorted(back), sequences, F.cross_entropy)
    finding = seen.one("T732")
    assert seen.rules == ["T732"]
    order = finding.measured["order"]
    assert sorted(order) == list(range(6))
    assert finding.measured["moved"] == sum(i != j for i, j in enumerate(order)) >= 4


@pytest.mark.parametrize("back", [
    lambda out, order, x: out[order.argsort()], lambda out, order, x: (out, order),
    lambda out, order, x: (out, x[order]),
], ids=["inverse", "order given", "inputs given"])
def test_rows_that_are_put_back_or_whose_order_is_told_are_left_alone(watching, back):
    with watching(CapturedCallProbe) as seen:
        train(Sorted(back), sequences, lambda out, y: F.cross_entropy(out[0] if isinstance(out, tuple) else out, y))
    assert seen.findings == []


class Joined(nn.Module):
    """What a recurrent part says of each sample, beside what is known of it otherwise."""

    def __init__(self, back):
        super().__init__()
        self.told, self.known, self.top = Sorted(back), nn.Linear(WIDTH, 4), nn.Linear(8, 4)

    def forward(self, x, lengths):
        return self.top(torch.cat([self.told(x, lengths), self.known(x[:, 0])], 1))


@pytest.mark.parametrize("back", [lambda out, order, x: out[order], lambda out, order, x: out], ids=["twice", "not"])
def test_a_part_inside_whose_rows_come_back_in_another_order_is_named(watching, back):
    def rows():
        x, _, y = sequences()
        return x, torch.tensor([9, 4, 6, 12, 5, 8]), y

    with watching(CapturedCallProbe) as seen:
        train(Joined(back), rows, F.cross_entropy)
    finding = seen.one("T732")
    assert finding.measured["within"] == "told"
    assert "the output of told" in finding.statement


@pytest.mark.parametrize(("back", "rules"), [
    (lambda out, order, x: out[order.argsort()], []),
    (lambda out, order, x: out[order.argsort()] + out.mean(), ["T903"])], ids=["put back", "mixed"])
def test_parts_that_are_put_back_or_mixed_are_no_other_order(watching, back, rules):
    with watching(CapturedCallProbe) as seen:
        train(Joined(back), sequences, F.cross_entropy)
    assert seen.rules == rules


def test_rows_that_are_mixed_are_no_other_order(watching):
    with watching(CapturedCallProbe) as seen:
        train(Sorted(lambda out, order, x: out[order.argsort()] + out.mean()), sequences, F.cross_entropy)
    assert seen.rules == ["T903"]


def test_targets_that_the_program_sorts_as_well_make_it_right(watching):
    data = torch.utils.data.TensorDataset(torch.randn(48, LENGTH, WIDTH), torch.randint(1, LENGTH, (48,)),
                                          torch.arange(48) % 4)
    model = Sorted(lambda out, order, x: out)
    with watching(CapturedCallProbe) as seen:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x, n, y in torch.utils.data.DataLoader(data, 6, shuffle=True):
            order = torch.argsort(n, descending=True, stable=True)
            optimizer.zero_grad()
            F.cross_entropy(model(x, n), y[order]).backward()
            optimizer.step()
    assert seen.findings == []
