"""Evaluations that look up rows which training never changed, and those that do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from traindx_tools.on_torch.probes.table_rows import TableRowsProbe, unchanged
from traindx_tools.on_torch.rules import t347_untrained_rows_asked

ROWS = 40


class Net(nn.Module):
    def __init__(self, tied=False):
        super().__init__()
        self.table, self.out = nn.Embedding(ROWS, 8), nn.Linear(8, ROWS)
        if tied:
            self.out.weight = self.table.weight

    def forward(self, ids):
        return self.out(self.table(ids))


def trained(ids, evaluated, *, make=torch.optim.Adam, tied=False, steps=30, load=False, **options):
    model = Net(tied)
    if load:
        model.load_state_dict(Net(tied).state_dict())
    optimizer = make(model.parameters(), 1e-2, **options)
    for k in range(steps):
        batch = ids()
        loss = nn.functional.cross_entropy(model(batch), batch % 5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if k % 10 == 9:
            with torch.no_grad():
                model(evaluated())


def between(low, high):
    return lambda: torch.randint(low, high, (64,))


def padded():
    """Padding is looked up throughout, and no gradient reaches its row."""
    def ids():
        return torch.cat([torch.zeros(32, dtype=torch.long), torch.randint(1, ROWS, (32,))])

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(30):
        batch = ids()
        nn.functional.cross_entropy(model(batch), batch, ignore_index=0).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            model(ids())


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        torch.manual_seed(0)
        with watching(TableRowsProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize(("train", "evaluated", "options", "kind"), [
    (between(0, 16), between(0, 32), {}, "beyond"),
    (lambda: torch.arange(16), lambda: torch.arange(ROWS), {}, "beyond"),
    (between(0, 16), between(0, 32), {"make": torch.optim.AdamW, "weight_decay": 0.1}, "beyond"),
    (between(20, ROWS), between(0, 10), {"make": torch.optim.SGD}, "all"),
    (lambda: 2 * torch.randint(0, 20, (64,)), lambda: torch.randint(0, 5, (64,)) * 6 + 1, {}, "all"),
], ids=["ids", "positions", "with decay", "another vocabulary", "other ids between"])
def test_rows_that_were_never_trained(told, train, evaluated, options, kind):
    (found,) = told(lambda: trained(train, evaluated, **options))
    assert (found.rule, found.measured["kind"], found.bearing.value) == ("T347", kind, "cause")


def test_loaded_weights_are_a_sign(told):
    (found,) = told(lambda: trained(between(0, 16), between(16, 32), load=True))
    assert found.bearing.value == "sign"


@pytest.mark.parametrize("program", [
    lambda: trained(between(0, 32), between(0, 16)),
    lambda: trained(between(0, 30), between(0, 33)),
    lambda: trained(between(0, 16), between(0, 32), tied=True),
    padded,
    lambda: trained(lambda: 4 * torch.randint(0, 10, (64,)), lambda: torch.arange(ROWS)),
], ids=["within", "a few beyond", "tied to the output", "padding", "a catalogue"])
def test_rows_that_were_trained(told, program):
    assert told(program) == []


def test_broken_inputs(told):
    assert told(lambda: trained(between(0, 16), between(0, 32), steps=5)) == []
    assert not unchanged(np.zeros((3, 3)), np.zeros((2, 3))).any()
    assert not unchanged(np.full((2, 3), np.nan), np.full((2, 3), np.nan)).any()
    assert list(t347_untrained_rows_asked.check([], 100)) == []
