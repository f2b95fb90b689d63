"""Rows that are filled up with another id than loss or embedding expect, and settings that agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.padding_roles import PaddingRolesProbe
from traindx_tools.on_torch.rules import t725_padding_ids_differ
from traindx_tools.on_torch.rules.t725_padding_ids_differ import PaddingRoles
from traindx_tools.rows.filling import Filling, look

VOCABULARY = 24


class Next(nn.Module):
    def __init__(self, padding=None):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 8, padding_idx=padding)
        self.out = nn.Linear(8, VOCABULARY)

    def forward(self, ids):
        return self.out(self.embedding(ids))


def rows(fill, lowest=0, size=16, length=12, end=None):
    """Rows of random ids, of different lengths, filled up behind."""
    out = torch.full((size, length), fill)
    for row in out:
        n = int(torch.randint(4, length - 1, ()))
        row[:n] = torch.randint(lowest, VOCABULARY - 1, (n,))
        row[:n][row[:n] == fill] = VOCABULARY - 2
        if end is not None:
            row[n - 1] = end
    return out


def trained(padding, make, loss_of, steps=10):
    torch.manual_seed(0)
    model = Next(padding)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        ids = make()
        loss = loss_of(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        with watching(PaddingRolesProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize(("padding", "loss", "kind", "filler", "other"), [
    (None, nn.CrossEntropyLoss(ignore_index=0), "loss", 1, 0),  # the collate fills with 1, the loss ignores 0
    (1, nn.CrossEntropyLoss(ignore_index=3), "loss", 1, 3),
    (0, nn.CrossEntropyLoss(ignore_index=1), "embedding", 1, 0),
    (1, nn.CrossEntropyLoss(), "not-told", 1, 1),
], ids=["loss", "loss beside an embedding that agrees", "embedding", "not told"])
def test_settings_that_differ(told, padding, loss, kind, filler, other):
    (found,) = told(lambda: trained(padding, lambda: rows(1), loss))
    assert (found.measured["kind"], found.measured["filler"], found.measured["told"]) == (kind, filler, other)
    assert found.bearing.value == ("sign" if kind == "not-told" else "cause")


@pytest.mark.parametrize(("padding", "make", "loss"), [
    (1, lambda: rows(1), nn.CrossEntropyLoss(ignore_index=1)),  # all three agree
    (None, lambda: rows(1), nn.CrossEntropyLoss(ignore_index=1)),
    (None, lambda: rows(1), nn.CrossEntropyLoss()),  # nothing is said anywhere
    (1, lambda: rows(1), lambda o, t: F.cross_entropy(o, t.masked_fill(t == 1, -100))),
    (1, lambda: rows(1), lambda o, t: (F.cross_entropy(o, t, reduction="none") * (t != 1)).mean()),
    (0, lambda: rows(1), nn.CrossEntropyLoss(weight=torch.ones(VOCABULARY), ignore_index=0)),
    (0, lambda: torch.randint(1, VOCABULARY, (16, 12)), nn.CrossEntropyLoss(ignore_index=0)),  # packed
    (0, lambda: torch.randint(1, 3, (16, 12)), nn.CrossEntropyLoss(ignore_index=0)),  # few symbols, runs by chance
    (0, lambda: torch.cat([rows(1, length=8), rows(1, length=8)], 1), nn.CrossEntropyLoss(ignore_index=0)),  # within
], ids=["agree", "no embedding", "nothing told", "masked labels", "masked losses", "weights", "packed", "few symbols",
        "stands within rows too"])
def test_settings_that_agree_or_cannot_be_judged(told, padding, make, loss):
    assert told(lambda: trained(padding, make, loss)) == []


def test_broken_inputs(told):
    def program():
        trained(0, lambda: torch.full((16, 12), 2), nn.CrossEntropyLoss(ignore_index=0))
        trained(0, lambda: torch.randint(1, 5, (16, 3)), nn.CrossEntropyLoss(ignore_index=0))
        F.cross_entropy(torch.zeros(3, 4), torch.zeros(3, dtype=torch.long))
    assert told(program) == []
    filling = Filling()
    look(filling, np.zeros((4, 6)))
    assert (filling.rows, filling.filler) == (0, None)
    assert list(t725_padding_ids_differ.check([PaddingRoles()])) == []
