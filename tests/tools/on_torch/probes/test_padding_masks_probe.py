"""Masks that are not those of what rows are filled up with, and masks that are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.padding_masks import PaddingMasksProbe
from traindx_tools.on_torch.rules import t727_mask_of_another_padding
from traindx_tools.on_torch.rules.t727_mask_of_another_padding import Masks

VOCABULARY, WIDTH, CLASSES = 30, 16, 3


class Encoder(nn.Module):
    """Attends to all that a mask keeps, and means it. `padding`: the id that it takes for padding by itself."""

    def __init__(self, padding=None, end=None):
        super().__init__()
        self.token, self.out = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, 0.0, batch_first=True)
        self.padding, self.end = padding, end

    def forward(self, ids, attention_mask=None):
        hidden = ids == self.padding if self.padding is not None else torch.zeros_like(ids, dtype=torch.bool)
        if attention_mask is not None:
            hidden = hidden | (attention_mask == 0)
        h = self.layer(self.token(ids), src_key_padding_mask=hidden)
        if self.end is not None:
            h = h + (ids == self.end)[..., None]
        return self.out((h * ~hidden[..., None]).sum(1) / (~hidden).sum(1, keepdim=True).clamp(min=1))


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.cell = nn.Embedding(VOCABULARY, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, attention_mask=None):
        return self.out(self.cell(self.token(ids))[0])


def rows(fill=1, size=16, length=12):
    out = torch.full((size, length), fill)
    for row in out:
        n = int(torch.randint(4, length - 1, ()))
        row[:n] = torch.randint(0, VOCABULARY, (n,))
        row[:n][row[:n] == fill] = 5
    return out


def trained(model, mask=None, make=rows, steps=10):
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(steps):
        ids = make()
        out = model(ids) if mask is None else model(ids, attention_mask=mask(ids))
        loss = (F.cross_entropy(out, ids[:, 0] % CLASSES) if out.ndim == 2 else
                F.cross_entropy(out[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        torch.manual_seed(0)
        with watching(PaddingMasksProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize(("program", "kind"), [
    (lambda: trained(Encoder(padding=0)), "constant"),
    (lambda: trained(Encoder(), lambda ids: torch.ones_like(ids)), "none"),
    (lambda: trained(Encoder(), lambda ids: (ids != 0).long()), "elsewhere"),
], ids=["another constant", "hides nothing", "another id's mask"])
def test_masks_of_another_padding(told, program, kind):
    (found,) = told(program)
    assert (found.rule, found.measured["kind"], found.measured["filler"]) == ("T727", kind, 1)
    assert found.bearing.value == ("sign" if kind == "elsewhere" else "cause")


@pytest.mark.parametrize("program", [
    lambda: trained(Encoder(padding=1)),
    lambda: trained(Encoder(padding=1, end=7)),
    lambda: trained(Encoder(), lambda ids: (ids != 1).long()),
    lambda: trained(Encoder(), lambda ids: ids != 1),
    lambda: trained(Encoder(padding=1), lambda ids: torch.ones_like(ids)),
    lambda: trained(Causal(), lambda ids: torch.ones_like(ids)),
    lambda: trained(Encoder()),
    lambda: trained(Encoder(padding=0), make=lambda: torch.randint(1, VOCABULARY, (16, 12))),
], ids=["its own", "and an end", "an argument", "of truth values", "both", "causal", "nothing is said", "no padding"])
def test_masks_that_fit_or_do_not_matter(told, program):
    assert told(program) == []


def test_asking_changes_nothing(watching):
    torch.manual_seed(0)
    plain = [*trained(Encoder(padding=0)), torch.rand(3)]
    torch.manual_seed(0)
    with watching(PaddingMasksProbe):
        seen = trained(Encoder(padding=0))
    assert all(map(torch.equal, plain, [*seen, torch.rand(3)]))


def test_broken_inputs(told):
    def program():
        trained(Encoder(padding=0), make=lambda: torch.full((16, 12), 3))
        trained(Encoder(padding=0), steps=1)
    assert told(program) == []
    masks = Masks("model", "ids", change=1.0)
    assert list(t727_mask_of_another_padding.check([masks])) == []
    masks.look(np.zeros((0, 4), np.int64), {"mask": np.zeros((0, 4), np.int64)})
    assert list(t727_mask_of_another_padding.check([masks])) == []
