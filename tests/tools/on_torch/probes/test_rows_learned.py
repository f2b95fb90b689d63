"""Ranges of rows, files and sources that are not learned, and what only looks so."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from row_programs import CLASSES, WIDTH, Next, fit, loader, net, split  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset, WeightedRandomSampler  # noqa: E402

from traindx_tools.on_torch.probes.rows import RowProbe  # noqa: E402


def spoilt(kind, first=300, last=500):
    x, y, held, labels = split()
    part = slice(first, last)
    if kind == "mapped":
        y[part] = (y[part] + 1) % CLASSES
    elif kind == "random":
        y[part] = torch.randint(0, CLASSES, (last - first,))
    elif kind == "inputs":
        x[part] *= 0.01
    return x, y, held, labels


@pytest.mark.parametrize(("fault", "kind"), [("mapped", "labels-mapped"), ("random", "labels-unrelated"),
                                             ("inputs", "inputs-otherwise")])
def test_a_range_that_is_not_learned(fault, kind, watching):
    x, y, held, labels = spoilt(fault)
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), loader(held, labels, False), epochs=4)
    found = next(f for f in w.findings if f.rule == "T713")
    assert found.measured["kind"] == kind
    assert abs(found.measured["first"] - 300) <= 5
    assert abs(found.measured["last"] - 499) <= 5


def test_the_file_of_a_dataset_that_was_put_together(watching):
    x, y, *_ = split()
    y[400:600] = (y[400:600] + 2) % CLASSES
    data = ConcatDataset([TensorDataset(x[a:b], y[a:b]) for a, b in ((0, 400), (400, 600), (600, 800))])
    with watching(RowProbe) as w:
        fit(net(), DataLoader(data, 32, shuffle=True), epochs=4)
    assert next(f for f in w.findings if f.rule == "T713").measured["part"] == "datasets = dataset 1"


class Sources(TensorDataset):
    """Rows with the site that each comes from."""

    def __init__(self, x, y, sites):
        super().__init__(x, y)
        self.sites = sites


def test_what_the_dataset_keeps_of_each_row_is_named(watching):
    x, y, *_ = split()
    sites = ["abc"[k % 3] for k in range(len(x))]
    of_b = torch.tensor([s == "b" for s in sites])
    y[of_b] = torch.randint(0, CLASSES, (int(of_b.sum()),))
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Sources(x, y, sites), 32, shuffle=True), epochs=4)
    assert next(f for f in w.findings if f.rule == "T713").measured["part"] == "sites = b"


@pytest.mark.slow
@pytest.mark.parametrize(("mixed", "kinds"), [(True, ["labels-unrelated"]), (False, [])])
def test_a_corpus_whose_tokens_are_in_no_order(mixed, kinds, watching):
    def text(n):
        return (torch.randint(0, 30, (n, 1)) + torch.arange(16)[None] * torch.randint(1, 3, (n, 1))) % 30

    corpora = [text(200), text(160), text(160)]
    if mixed:
        corpora[1] = torch.stack([row[torch.randperm(16)] for row in corpora[1]])
    data = ConcatDataset([TensorDataset(t, t) for t in corpora])
    with watching(RowProbe) as w:
        fit(Next(), DataLoader(data, 20, shuffle=True), epochs=10, rate=2e-2,
            loss_of=lambda logits, t: F.cross_entropy(logits[:, :-1].reshape(-1, 30), t[:, 1:].reshape(-1)))
    found = [f for f in w.findings if f.rule == "T713"]
    assert [f.measured["kind"] for f in found] == kinds
    assert [f.measured["part"] for f in found] == ["datasets = dataset 1"] * len(kinds)


class OwnLoss(nn.Module):
    """A model that is given its labels."""

    def __init__(self):
        super().__init__()
        self.inner = net()

    def forward(self, x, labels=None):
        logits = self.inner(x)
        return logits if labels is None else F.cross_entropy(logits, labels)


@pytest.mark.parametrize(("rolled", "rules"), [(0, []), (1, ["T714"])])
def test_labels_that_a_model_is_given_are_no_inputs(rolled, rules, watching):
    x, y, *_ = split()
    model = OwnLoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with watching(RowProbe) as w:
        for rows_now, labels in loader(x, y.roll(rolled)):
            model(x=rows_now, labels=labels).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert w.rules == rules


def test_a_harder_source_is_left_alone(watching):
    x, y, *_ = split()
    sites = ["abc"[k % 3] for k in range(len(x))]
    of_b = torch.tensor([s == "b" for s in sites])
    x[of_b] += 1.5 * torch.randn(int(of_b.sum()), WIDTH)
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Sources(x, y, sites), 32, shuffle=True), epochs=5)
    assert w.loud == []


def test_rare_classes_and_a_little_label_noise_are_left_alone(watching):
    x, y, *_ = split()
    keep = (y > 0) | (torch.rand(len(y)) < 0.1)
    x, y = x[keep], y[keep]
    wrong = torch.rand(len(y)) < 0.05
    y[wrong] = torch.randint(0, CLASSES, (int(wrong.sum()),))
    weights = (1.0 / torch.bincount(y))[y]
    with watching(RowProbe) as w:
        fit(net(), DataLoader(TensorDataset(x, y), 32, sampler=WeightedRandomSampler(weights, len(y))), epochs=5)
    assert w.loud == []


def test_data_that_is_sorted_on_purpose_is_left_alone(watching):
    x, y, held, labels = split()
    order = (x**2).sum(1).argsort()
    with watching(RowProbe) as w:
        fit(net(), loader(x[order], y[order], False), loader(held, labels, False), epochs=4)
    assert w.loud == []
