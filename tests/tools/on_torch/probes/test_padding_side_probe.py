"""Rows that are padded in front where a model is evaluated, and models that take such padding out."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.captured.padding_before import begins_of
from traindx_tools.on_torch.probes.padding_side import PaddingSideProbe
from traindx_tools.on_torch.rules import t348_padding_before

VOCABULARY, WIDTH, LENGTH = 30, 16, 14


class Decoder(nn.Module):
    """Causal attention of one head. `careful`: masks and positions are made of the ids."""

    def __init__(self, careful=False):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.query, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.careful = careful

    def forward(self, ids):
        keep = ids != 0 if self.careful else torch.ones_like(ids, dtype=torch.bool)
        h = self.token(ids) + self.position((keep.cumsum(1) - 1).clamp(min=0))
        q, k, v = self.query(h).chunk(3, -1)
        causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None] & keep[:, None, :]
        scores = (q @ k.transpose(1, 2)).masked_fill(~causal, -1e4)
        return self.out(h + scores.softmax(-1) @ v)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.cell = nn.Embedding(VOCABULARY, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.out(self.cell(self.token(ids))[0])


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.out = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.out(self.token(ids).cumsum(1))


def rows(side, size=12, length=LENGTH, fixed=False):
    lengths = [int(n) for n in torch.randint(3, length, (size,))]
    width = length if fixed else max(lengths)
    out = torch.zeros(size, width, dtype=torch.long)
    for row, n in zip(out, lengths, strict=True):
        part = slice(0, n) if side == "behind" else slice(width - n, width)
        row[part] = torch.randint(1, VOCABULARY, (n,))
    return out


def trained(model, side, evaluated=None, steps=8, fixed=False):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        model.train()
        ids = rows(side, fixed=fixed)
        loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if evaluated:
            model.eval()
            with torch.no_grad():
                model(rows(evaluated, fixed=fixed))


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        torch.manual_seed(0)
        with watching(PaddingSideProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize("make", [Decoder, Recurrent])
def test_evaluated_with_padding_in_front(told, make):
    (found,) = told(lambda: trained(make(), "behind", "before"))
    assert (found.rule, found.measured["kind"], found.bearing.value) == ("T348", "evaluation", "cause")
    assert found.measured["token"] == 0


def test_padded_in_front_throughout_is_a_sign(told):
    (found,) = told(lambda: trained(Decoder(), "before", "before"))
    assert (found.measured["kind"], found.bearing.value) == ("both", "sign")


@pytest.mark.parametrize("program", [
    lambda: trained(Decoder(careful=True), "behind", "before"),
    lambda: trained(Bag(), "behind", "before"),
    lambda: trained(Decoder(), "behind", "behind"),
    lambda: trained(Decoder(), "behind"),
    lambda: trained(Decoder(), "before", "before", fixed=True),
], ids=["a mask of the ids", "a bag", "behind", "no evaluation", "windows"])
def test_padding_that_is_taken_out(told, program):
    assert told(program) == []


def test_evaluations_change_nothing(watching):
    def run():
        torch.manual_seed(0)
        model = Decoder()
        trained(model, "behind", "before")
        return [p.detach().clone() for p in model.parameters()], torch.rand(3)

    plain, after = run()
    with watching(PaddingSideProbe):
        seen, then = run()
    assert all(map(torch.equal, plain, seen))
    assert torch.equal(after, then)


def test_broken_inputs(told):
    assert told(lambda: trained(Decoder(), "behind", "before", steps=1)) == []  # too few calls
    assert begins_of(torch.zeros(4, 6, dtype=torch.long)) is None
    assert begins_of(torch.randint(1, 5, (4, 6))) is None
    assert list(t348_padding_before.check(None)) == []
