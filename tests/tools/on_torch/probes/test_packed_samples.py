"""Samples that lie one behind the other in the rows of a call: graphs and packs that keep apart, and that do not."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.captured.owned import owners_of
from traindx_tools.on_torch.probes.captured_call import CapturedCallProbe

WIDTH, GRAPHS = 5, 6


class Graphs(nn.Module):
    """Messages along edges, one answer a graph, or one a node."""

    def __init__(self, *, nodes=False, norm=None):
        super().__init__()
        self.embed, self.message, self.out = nn.Linear(WIDTH, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.norm, self.nodes = norm, nodes

    def forward(self, x, edges, owner, weights=None):
        h = self.embed(x)
        if self.norm is not None:
            h = self.norm(h)
        sent = self.message(h[edges[0]]).relu()
        h = h + torch.zeros_like(h).index_add(0, edges[1], sent if weights is None else sent * weights)
        if self.nodes:
            return self.out(h)
        return self.out(torch.zeros(int(owner[-1]) + 1, 8).index_add(0, owner, h)).squeeze(-1)


def graphs(offset, *, weighted=False):
    """`offset`: by what the numbers of the nodes grow from one graph to the next."""
    xs, edges, owner, at = [], [], [], 0
    for i in range(GRAPHS):
        n = 5 + i % 3
        xs.append(torch.randn(n, WIDTH))
        edges.append(torch.stack([torch.arange(n), torch.arange(n).roll(1)]) + at)
        owner.append(torch.full((n,), i))
        at += offset(n)
    edges = torch.cat(edges, 1)
    more = [torch.rand(edges.shape[1], 1)] if weighted else []
    return torch.cat(xs), edges, torch.cat(owner), *more


class Packed(nn.Module):
    """Attention over packed sequences with a mask by their bounds, or with none."""

    def __init__(self, *, masked):
        super().__init__()
        self.qkv, self.out, self.masked = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 2), masked

    def forward(self, x, bounds):
        q, k, v = self.qkv(x)[None].chunk(3, -1)
        sample = torch.bucketize(torch.arange(len(x)), bounds[1:], right=True)
        mask = sample[:, None] == sample[None] if self.masked else None
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))[0]


class Prototypes(nn.Module):
    """Queries against the means of a sorted support set: a comparison on purpose."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(WIDTH, 4)

    def forward(self, support, labels, query):
        means = torch.zeros(int(labels[-1]) + 1, 4).index_add(0, labels, self.body(support))
        return -torch.cdist(self.body(query), means)


def found(watching, model, batch):
    with watching(CapturedCallProbe) as w:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(4):
            model.train()
            loss = model(*batch()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [f for f in w.findings if f.rule == "T903"]


@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_offset_that_counts_something_else_mixes_graphs(nodes, weighted, watching):
    (finding,) = found(watching, Graphs(nodes=nodes), lambda: graphs(lambda n: WIDTH, weighted=weighted))
    assert "all rows of the other 5 samples" in finding.statement
    assert "offsets of edges" in finding.measured["how"]


@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("norm", [None, nn.LayerNorm(8), nn.BatchNorm1d(8)])
def test_graphs_that_keep_apart_are_left_alone(nodes, norm, watching):
    assert found(watching, Graphs(nodes=nodes, norm=norm), lambda: graphs(lambda n: n, weighted=True)) == []


class Kinds(Graphs):
    """Nodes that are kinds: no argument has numbers of its own for a row."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 8)


@pytest.mark.parametrize(("offset", "told"), [(lambda n: n - 1, 1), (lambda n: n, 0)], ids=["short", "right"])
def test_graphs_of_kinds(offset, told, watching):
    def batch():
        x, *rest = graphs(offset)
        return (x[:, 0].abs() * 2).long().clamp(max=6), *rest

    assert len(found(watching, Kinds(), batch)) == told


def pack():
    return torch.randn(20, WIDTH), torch.tensor([0, 4, 9, 15, 20])


def test_a_pack_without_a_mask_mixes_sequences(watching):
    assert len(found(watching, Packed(masked=False), pack)) == 1
    assert found(watching, Packed(masked=True), pack) == []


def test_a_support_set_is_no_pack(watching):
    def episode():
        return torch.randn(15, WIDTH), torch.arange(3).repeat_interleave(5), torch.randn(3, WIDTH)

    assert found(watching, Prototypes(), episode) == []


@pytest.mark.parametrize(("tensors", "owner"), [
    ([torch.zeros(5, 2), torch.tensor([0, 0, 1, 2, 2])], [0, 0, 1, 2, 2]),
    ([torch.zeros(5, 2), torch.tensor([0, 2, 3, 5])], [0, 0, 1, 2, 2]),
    ([torch.zeros(5, 2), torch.tensor([0, 0, 1, 2, 2]), torch.zeros(2, 7, dtype=torch.long), torch.zeros(7, 1)],
     [0, 0, 1, 2, 2]),
    ([torch.zeros(5, 2), torch.tensor([0, 0, 1, 2, 2]), torch.zeros(7, 1)], None),
    ([torch.zeros(5, 2), torch.tensor([0, 1, 2, 3, 4])], None),
    ([torch.zeros(5, 2), torch.tensor([0, 0, 1, 1, 1])], None),
    ([torch.zeros(5, 2), torch.tensor([1, 0, 2, 2, 1])], None),
    ([torch.zeros(5, 2), torch.tensor([0, 0, 2, 2, 3])], None),
    ([torch.zeros(5, 2), torch.tensor([0, 2, 2, 5])], None),
    ([torch.zeros(5, 2), torch.tensor([True, False, True, False, True])], None),
    ([torch.zeros(0, 2), torch.zeros(0, dtype=torch.long)], None),
    ([torch.tensor([4, 1, 4, 0, 2]), torch.tensor([0, 0, 1, 2, 2]), torch.zeros(2, 7, dtype=torch.long)],
     [0, 0, 1, 2, 2]),
    ([torch.tensor([0, 0, 1, 2, 2]), torch.zeros(2, 7, dtype=torch.long)], None),
    ([torch.zeros(5, 9, dtype=torch.long), torch.tensor([0, 0, 1, 2, 2])], None),
    ([torch.tensor(3.0), torch.tensor(2)], None),
    ([], None),
])
def test_which_sample_a_row_belongs_to(tensors, owner):
    found = owners_of(tensors)
    assert (None if found is None else found.tolist()) == owner
