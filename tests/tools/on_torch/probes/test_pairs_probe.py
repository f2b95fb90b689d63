"""Evaluated pairs that were trained on in the other order: faulty programs, healthy twins, broken inputs."""

from __future__ import annotations

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from traindx_tools.on_torch.probes.pairs import PairProbe  # noqa: E402

NODES, EDGES, WIDTH = 150, 500, 8


def unordered(nodes=NODES, edges=EDGES):
    """int64 shape (edges, 2): each unordered pair once, u < v."""
    u, v = torch.triu_indices(nodes, nodes, 1)
    chosen = torch.randperm(len(u))[:edges]
    return torch.stack([u[chosen], v[chosen]], 1)


def both(edges):
    return torch.cat([edges, edges.flip(1)])


def split(rows, held=0.25):
    rows = rows[torch.randperm(len(rows))]
    n = int(held * len(rows))
    return rows[n:], rows[:n]


def by_row():
    """The fault: the two orders of a pair are two samples."""
    return split(both(unordered()))


def by_pair():
    train, held = split(unordered())
    return both(train), both(held)


def negatives(n):
    return torch.randint(0, NODES, (n, 2))


class Dot(nn.Module):
    """Given pairs as rows of two columns."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(NODES, WIDTH)

    def forward(self, pairs):
        return (self.table(pairs[:, 0]) * self.table(pairs[:, 1])).sum(-1)


class Graph(nn.Module):
    """Features of nodes and an edge index of two rows; attention over both ends of each edge."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.randn(NODES, WIDTH))
        self.mix = nn.Linear(2 * WIDTH, 1)

    def encode(self, edge_index):
        h = self.x
        weight = torch.sigmoid(self.mix(torch.cat([h[edge_index[0]], h[edge_index[1]]], -1)))
        return h + torch.zeros_like(h).index_add(0, edge_index[1], weight * h.index_select(0, edge_index[0]))

    def forward(self, edge_index, edge_label_index):
        h = self.encode(edge_index)
        return (h.index_select(0, edge_label_index[0]) * h.index_select(0, edge_label_index[1])).sum(-1)


class Siamese(nn.Module):
    def __init__(self, wide=6):
        super().__init__()
        self.body = nn.Linear(wide, WIDTH)

    def forward(self, x1, x2):
        return F.cosine_similarity(self.body(x1), self.body(x2))


def bce(positive, negative):
    logits = torch.cat([positive, negative])
    return F.binary_cross_entropy_with_logits(logits, torch.cat([torch.ones_like(positive),
                                                                 torch.zeros_like(negative)]))


def learn(model, loss_of, evaluate, epochs=6):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(epochs):
        model.train()
        for batch in loss_of():
            optimizer.zero_grad()
            batch.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluate()


def columns(train, held, epochs=6):
    model, against = Dot(), negatives(len(held))

    def losses():
        for part in train.split(100):
            yield bce(model(part), model(negatives(len(part))))

    learn(model, losses, lambda: (model(held), model(against)), epochs)


def edge_index(train, held, messages=None, shown=None):
    model = Graph()
    messages = both(train).T if messages is None else messages
    shown = messages if shown is None else shown

    def losses():
        yield bce(model(messages, train.T), model(messages, negatives(len(train)).T))

    learn(model, losses, lambda: model(shown, held.T))


def gathers(train, held, look=None):
    """Outside of the model: positives and negatives in one call, told apart by nothing but how often they come."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH))
    x = torch.randn(NODES, WIDTH)
    look = look or (lambda z, e: (z[e[:, 0]] * z[e[:, 1]]).sum(-1))
    against = negatives(len(held))

    def losses():
        z = model(x)
        rows = torch.cat([train, negatives(len(train))])
        said = look(z, rows)
        yield -F.logsigmoid(said[:len(train)]).mean() - F.logsigmoid(-said[len(train):]).mean()

    def evaluate():
        z = model(x)
        return look(z, torch.cat([held, against]))

    learn(model, losses, evaluate)


def siamese(train, held, views=None):
    x = torch.randn(NODES, 6)
    label = lambda e: ((x[e[:, 0]] - x[e[:, 1]]).norm(dim=1) < 3).float()  # noqa: E731
    model = Siamese()
    views = views or (lambda rows: rows)

    def losses():
        for i, j, y in DataLoader(TensorDataset(train[:, 0], train[:, 1], label(train)), 64, shuffle=True):
            yield F.mse_loss(model(views(x[i]), views(x[j])), y)

    def evaluate():
        for i, j in DataLoader(TensorDataset(held[:, 0], held[:, 1]), 64):
            model(x[i], x[j])

    learn(model, losses, evaluate)


def one_encoder(train, held):
    """The model is called once for each side."""
    x = torch.randn(NODES, 6)
    model = nn.Linear(6, WIDTH)

    def losses():
        for part in train.split(64):
            one, other = model(x[part[:, 0]]), model(x[part[:, 1]])
            yield (1 - F.cosine_similarity(one, other)).mean()

    def evaluate():
        for part in held.split(64):
            F.cosine_similarity(model(x[part[:, 0]]), model(x[part[:, 1]]))

    learn(model, losses, evaluate)


LOOKS = {
    "index_select": lambda z, e: (z.index_select(0, e[:, 0]) * z.index_select(0, e[:, 1])).sum(-1),
    "rows of two": lambda z, e: z[e].prod(1).sum(-1),
    "matrix": lambda z, e: (z @ z.T)[e[:, 0], e[:, 1]],
}


@pytest.mark.parametrize("program", [columns, edge_index, gathers, siamese, one_encoder])
def test_a_split_by_row_of_both_orders(program, watching):
    train, held = by_row()
    with watching(PairProbe) as w:
        if program is edge_index:
            program(train, held, messages=train.T)
        else:
            program(train, held)
    found = w.one("T719")
    assert found.where.file.endswith("test_pairs_probe.py")
    assert found.where.line
    assert 0.25 < found.measured["share"] < 0.9
    assert found.measured["both_ways"] > 0.95
    assert "in the other order" in found.statement
    assert w.loud


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_ways_to_look_pairs_up(look, watching):
    with watching(PairProbe) as w:
        gathers(*by_row(), look=look)
    assert w.rules == ["T719"]


def test_a_pair_that_is_named_is_one_of_them(watching):
    train, held = by_row()
    with watching(PairProbe) as w:
        columns(train, held)
    u, v = w.one("T719").measured["pairs"][0]
    assert [u, v] in held.tolist()
    assert [v, u] in train.tolist()
    assert w.one("T719").measured["rows"] == sum(p[::-1] in train.tolist() for p in held.tolist())


# ---- healthy twins


@pytest.mark.parametrize("program", [columns, edge_index, gathers, siamese, one_encoder])
def test_a_split_by_unordered_pair(program, watching):
    with watching(PairProbe) as w:
        program(*by_pair())
    assert w.findings == []


@pytest.mark.parametrize("returned", [0.0, 0.4, 0.6])
@pytest.mark.parametrize("program", [columns, gathers])
def test_a_directed_relation_that_is_sometimes_returned(program, returned, watching):
    edges = unordered()
    edges = torch.where(torch.rand(len(edges), 1) < 0.5, edges, edges.flip(1))
    mutual = edges[torch.rand(len(edges)) < returned]
    with watching(PairProbe) as w:
        program(*split(torch.cat([edges, mutual.flip(1)])))
    assert w.findings == []


def test_two_columns_of_features_are_no_pair(watching):
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Embedding(40, WIDTH), nn.Embedding(40, 1)

        def forward(self, x):
            return (self.a(x[:, 0]) * self.b(x[:, 1])).sum(-1)

    model, x = Features(), torch.stack([torch.randint(0, 40, (900,)), torch.randint(0, 40, (900,))], 1)
    y = torch.randn(900)
    with watching(PairProbe) as w:
        learn(model, lambda: (F.mse_loss(model(x[k:k + 100]), y[k:k + 100]) for k in range(0, 600, 100)),
              lambda: model(x[600:]))
    assert w.findings == []


@pytest.mark.slow
def test_a_small_vocabulary_meets_by_chance(watching):
    rows = torch.randint(0, 12, (800, 2))
    with watching(PairProbe) as w:
        columns(rows[:600], rows[600:])
        siamese(rows[:600], rows[600:])
    assert w.findings == []


def test_user_and_item_numbers_of_one_range(watching):
    rows = torch.randint(0, NODES, (900, 2))
    with watching(PairProbe) as w:
        columns(rows[:600], rows[600:])
    assert w.findings == []


def test_messages_over_both_directions_of_training_edges(watching):
    train, held = split(unordered())
    with watching(PairProbe) as w:
        edge_index(train, held, messages=both(train).T)
        edge_index(train, held, messages=both(train).T, shown=both(torch.cat([train, held])).T)
    assert w.findings == []


def test_evaluation_on_the_training_pairs_on_purpose(watching):
    train, _ = by_row()
    with watching(PairProbe) as w:
        columns(train, train[:200])
        gathers(train, train[:200])
    assert w.findings == []


def test_training_pairs_scored_in_both_orders(watching):
    train, _ = split(unordered())
    with watching(PairProbe) as w:
        columns(train, both(train))
    assert w.findings == []


def test_training_pairs_in_chance_orders_scored_in_both(watching):
    train, held = split(unordered())
    model = Dot()

    def losses():
        for part in train.split(100):
            turned = torch.where(torch.rand(len(part), 1) < 0.5, part, part.flip(1))
            yield bce(model(turned), model(negatives(len(part))))

    with watching(PairProbe) as w:
        learn(model, losses, lambda: (model(both(train)), model(held)), epochs=2)
    assert w.findings == []


def test_pairs_of_one_batch_scored_against_mined_ones_while_training(watching):
    train, held = by_pair()
    model = Dot()

    def losses():
        for part in train.split(100):
            with torch.no_grad():
                z = model.table.weight
                mined = (z @ z.T)[part[:, 0]].topk(5).indices[:, 2]
                assert len(z[part[:, 0]] * z[mined])
            yield bce(model(part), model(torch.stack([part[:, 0], mined], 1)))

    with watching(PairProbe) as w:
        learn(model, losses, lambda: model(held), epochs=10)
    assert w.findings == []


def test_graphs_of_a_batch_numbered_anew(watching):
    def batch(graphs=8, nodes=8):
        pairs = torch.triu_indices(nodes, nodes, 1)
        parts = [both(pairs[:, torch.rand(pairs.shape[1]) < 0.4].T) + nodes * g for g in range(graphs)]
        return torch.cat(parts).T

    model, train, held = Graph(), [batch() for _ in range(6)], [batch() for _ in range(4)]
    with watching(PairProbe) as w:
        learn(model, lambda: (_nodes(model, e).square().mean() for e in train),
              lambda: [_nodes(model, e) for e in held])
    assert w.findings == []


def test_scripts_and_transformations_work_while_indexing_is_watched(watching):
    with watching(PairProbe):
        gathers(*by_row())
        assert torch.jit.script(Dot())(torch.zeros(5, 2, dtype=torch.int64)).shape == (5,)
        with torch.no_grad():
            values = torch.arange(10.0)
            assert torch.equal(torch.vmap(lambda i: values[i])(torch.arange(5)), values[:5])
            assert torch.equal(values.index_select(dim=0, index=torch.tensor([3, 1])), values[[3, 1]])
            assert values[values > 7].tolist() == [8.0, 9.0]


def test_the_whole_graph_is_the_input_of_training_and_evaluation(watching):
    graph, model, y = both(unordered()).T, Graph(), torch.randint(0, WIDTH, (NODES,))
    seen = torch.arange(NODES) < 100
    with watching(PairProbe) as w:
        learn(model, lambda: iter([F.cross_entropy(_nodes(model, graph)[seen], y[seen])]),
              lambda: _nodes(model, graph)[~seen])
    assert w.findings == []


def _nodes(model, graph):
    return model.encode(graph)


@pytest.mark.slow
def test_negatives_that_are_drawn_anew_at_each_evaluation(watching):
    train, held = by_pair()
    model = Dot()
    with watching(PairProbe) as w:
        learn(model, lambda: iter([bce(model(train), model(negatives(4 * len(train))))]),
              lambda: (model(held), model(negatives(20 * len(held)))), epochs=20)
    assert w.findings == []


def test_two_views_of_one_picture(watching):
    train, held = by_row()
    with watching(PairProbe) as w:
        siamese(train, held, views=lambda rows: rows + 0.1 * torch.randn_like(rows))
    assert w.findings == []


# ---- the program stays as it is


def test_results_and_random_numbers_stay(watching):
    def run(watched):
        torch.manual_seed(3)
        train, held = by_row()
        model = Dot()

        def losses():
            for part in train.split(100):
                yield bce(model(part), model(negatives(len(part))))

        if watched:
            with watching(PairProbe):
                learn(model, losses, lambda: model(held))
        else:
            learn(model, losses, lambda: model(held))
        return model.table.weight.detach().clone(), torch.rand(3)

    alone, seen = run(False), run(True)
    assert all(torch.equal(a, b) for a, b in zip(alone, seen, strict=True))


def test_indexing_is_patched_for_pairs_alone_and_taken_back(watching):
    before = torch.Tensor.__getitem__, torch.Tensor.index_select
    with watching(PairProbe):
        model = nn.Linear(4, 1)
        learn(model, lambda: iter([model(torch.randn(8, 4)).square().mean()]), lambda: model(torch.randn(8, 4)))
        assert (torch.Tensor.__getitem__, torch.Tensor.index_select) == before
        gathers(*by_row())
        assert torch.Tensor.__getitem__ is not before[0]
    assert (torch.Tensor.__getitem__, torch.Tensor.index_select) == before
    assert "__getitem__" not in vars(torch.Tensor)


def test_no_tensor_is_kept_alive(watching):
    kept = []
    with watching(PairProbe):
        train, held = by_row()
        model = nn.Linear(WIDTH, WIDTH)

        def step(grad):
            z = model(torch.randn(NODES, WIDTH))
            e = (train if grad else held).clone()
            said = (z[e[:, 0]] * z[e[:, 1]]).sum(-1)
            kept.extend(weakref.ref(t) for t in (z, e, said))
            return said.square().mean()

        learn(model, lambda: (step(True) for _ in range(2)), lambda: step(False))
        gc.collect()
        assert [r for r in kept[:-3] if r() is not None] == []


@pytest.mark.parametrize("rows", [
    torch.zeros(0, 2, dtype=torch.int64), torch.zeros(1, 2, dtype=torch.int64), torch.full((40, 2), 3),
    torch.zeros(2, 2, dtype=torch.int64),
], ids=["none", "one", "one value", "two"])
def test_pairs_that_say_nothing(rows, watching):
    model = Dot()
    with watching(PairProbe) as w:
        learn(model, lambda: iter([model(rows).sum() + model.table.weight.sum()]), lambda: model(rows))
    assert w.findings == []


def test_inputs_that_are_not_finite(watching):
    model, x = Siamese(), torch.full((60, 6), float("nan"))
    with watching(PairProbe) as w:
        learn(model, lambda: iter([model(x, x.clone()).sum()]), lambda: model(x.clone(), x))
    assert w.findings == []
