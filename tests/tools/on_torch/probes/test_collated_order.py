"""T733: fields of a batch that the collate function put in different orders, and batches that look like it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, default_collate

from traindx_tools.on_torch.probes.collated_order import CollatedOrderProbe

RANDOM = torch.Generator().manual_seed(3)
TRACKS = [(torch.randn(int(torch.randint(3, 9, (1,), generator=RANDOM)), 2, generator=RANDOM), i % 3)
          for i in range(64)]


def by_length(rows):
    """Longest first."""
    return sorted(range(len(rows)), key=lambda i: -len(rows[i][0]))


def inputs_alone(rows):
    order = by_length(rows)
    return pad_sequence([rows[i][0] for i in order], batch_first=True), torch.tensor([y for _, y in rows])


def labels_alone(rows):
    return pad_sequence([x for x, _ in rows], batch_first=True), torch.tensor(sorted(y for _, y in rows))


def in_place(rows):
    labels = torch.tensor([y for _, y in rows])
    rows.sort(key=lambda r: -len(r[0]))
    return pad_sequence([x for x, _ in rows], batch_first=True), labels


def both(rows):
    order = by_length(rows)
    return pad_sequence([rows[i][0] for i in order], batch_first=True), torch.tensor([rows[i][1] for i in order])


def with_order(rows):
    x, y = inputs_alone(rows)
    return x, y, torch.tensor(by_length(rows))


def mixed(rows):
    x, y = pad_sequence([x for x, _ in rows], batch_first=True), torch.tensor([y for _, y in rows])
    other = torch.randperm(len(rows))
    return x, y, y[other], x[other]


def trained(watching, collate, data=TRACKS):
    with watching(CollatedOrderProbe) as seen:
        net = nn.Linear(2, 3)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for x, y, *_ in DataLoader(data, 16, shuffle=True, collate_fn=collate):
            optimizer.zero_grad()
            F.cross_entropy(net(x.sum(1)), y).backward()
            optimizer.step()
    return seen


@pytest.mark.parametrize("collate", [inputs_alone, labels_alone, in_place])
def test_fields_in_different_orders(watching, collate):
    seen = trained(watching, collate)
    finding = seen.one("T733")
    assert (finding.measured["key"], finding.measured["field"], finding.measured["batches"]) == ("0", "1", 4)
    assert finding.where.line == collate.__code__.co_firstlineno
    assert finding.measured["moved"] > 5


@pytest.mark.parametrize("collate", [both, with_order, mixed])
def test_one_order_or_one_that_is_told_is_left_alone(watching, collate):
    assert trained(watching, collate).findings == []


def test_what_cannot_be_compared_says_nothing(watching):
    same = [(torch.ones(4, 2), 0)] * 64
    assert trained(watching, default_collate, same).findings == []
    augmented = [(x + 1, y) for x, y in TRACKS]
    assert trained(watching, lambda rows: both([(x * torch.rand(()), y) for x, y in rows]), augmented).findings == []
    with watching(CollatedOrderProbe) as seen:
        for _ in DataLoader([str(i) for i in range(40)], 8):
            pass
        for _ in DataLoader([{"x": i} for i in range(40)], 8, collate_fn=lambda rows: rows):
            pass
    assert seen.findings == []
