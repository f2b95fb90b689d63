"""Weights of classes against the labels: in another order, upside down, and as they should be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.class_weights import ClassWeightsProbe
from traindx_tools.rows.class_weights import misfit

COUNTS = np.array([40, 400, 90, 1500, 170.0])
ODDS = np.array([0.02, 0.4, 0.1, 0.25])


def labels(size=600):
    return torch.multinomial(torch.tensor(COUNTS / COUNTS.sum()), size, replacement=True)


def inverse(counts=COUNTS):
    return torch.tensor(counts.sum() / counts / len(counts), dtype=torch.float32)


def by_frequency():
    return inverse(np.sort(COUNTS)[::-1].copy())


def train(loss, target, steps=6, width=5):
    model = nn.Linear(3, width)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    told = []
    for _ in range(steps):
        y = target()
        value = loss(model(torch.randn(len(y), 3)), y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        told.append(value.item())
    return told


def found(watching, loss, target=labels, **more):
    torch.manual_seed(0)
    with watching(ClassWeightsProbe) as w:
        train(loss, target, **more)
    return w.findings


@pytest.mark.parametrize("loss", [
    nn.CrossEntropyLoss(weight=by_frequency()),
    lambda out, y: F.cross_entropy(out, y, weight=by_frequency().sqrt(), label_smoothing=0.1),
    lambda out, y: F.nll_loss(out.log_softmax(1), y, by_frequency() * 7, reduction="sum"),
    nn.CrossEntropyLoss(weight=by_frequency(), ignore_index=-1)])
def test_weights_in_the_order_of_a_table_by_frequency(loss, watching):
    (finding,) = found(watching, loss)
    assert (finding.measured["kind"], finding.measured["class"]) == ("permuted", 3)
    assert finding.where.line is not None


def test_weights_that_grow_with_the_counts(watching):
    weights = torch.tensor(COUNTS / COUNTS.sum(), dtype=torch.float32)
    (finding,) = found(watching, nn.CrossEntropyLoss(weight=weights))
    assert (finding.measured["kind"], finding.measured["class"]) == ("inverted", 3)


def many_labels(size=600):
    return (torch.rand(size, 4) < torch.tensor(ODDS / (1 + ODDS))).float()


@pytest.mark.parametrize(("order", "said"), [([0, 1, 2, 3], 0), ([1, 3, 2, 0], 1)])
def test_the_weights_of_many_labels(order, said, watching):
    weight = torch.tensor(1 / ODDS[order], dtype=torch.float32)
    assert len(found(watching, nn.BCEWithLogitsLoss(pos_weight=weight), many_labels, width=4)) == said


def balanced(size=600):
    return torch.randint(0, 5, (size,))


@pytest.mark.parametrize(("loss", "target"), [
    (nn.CrossEntropyLoss(), labels),
    (nn.CrossEntropyLoss(weight=inverse()), labels),
    (nn.CrossEntropyLoss(weight=inverse().sqrt()), labels),
    (nn.CrossEntropyLoss(weight=inverse(COUNTS * np.array([1.1, 0.9, 1, 1, 1.1]))), labels),
    (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0, 2.0, 1.0, 5.0])), labels),
    (nn.CrossEntropyLoss(weight=torch.tensor([5.0, 1.0, 1.0, 1.0, 1.0])), labels),
    (nn.CrossEntropyLoss(weight=by_frequency()), balanced),
    (nn.CrossEntropyLoss(weight=torch.tensor([0.0, 0, 1, 1, 1])), labels),
    (lambda out, y: F.cross_entropy(out, F.one_hot(y, 5).float(), weight=by_frequency()), labels),
    (lambda out, y: F.cross_entropy(out, y, weight=torch.ones(5)), labels),
], ids=["none", "right", "roots", "other counts", "costs", "one raised", "balanced", "left out", "soft labels", "even"])
def test_weights_that_fit_or_that_counts_did_not_make(loss, target, watching):
    assert found(watching, loss, target) == []


def test_an_evaluation_is_not_counted(watching):
    def evaluated(out, y):
        with torch.no_grad():
            F.cross_entropy(out, y, weight=by_frequency())
        return F.cross_entropy(out, y)

    assert found(watching, evaluated) == []


def test_two_classes_and_few_rows_say_nothing(watching):
    assert found(watching, nn.CrossEntropyLoss(weight=torch.tensor([0.1, 0.9])),
                 lambda: (torch.rand(600) < 0.9).long(), width=2) == []
    assert found(watching, nn.CrossEntropyLoss(weight=by_frequency()), lambda: labels(30), steps=2) == []


def test_results_are_the_same(watching):
    torch.manual_seed(0)
    alone = train(nn.CrossEntropyLoss(weight=by_frequency()), labels)
    torch.manual_seed(0)
    with watching(ClassWeightsProbe):
        assert train(nn.CrossEntropyLoss(weight=by_frequency()), labels) == alone


@pytest.mark.parametrize("weights", [[np.nan] * 5, [np.inf] * 5, [0.0] * 5, [-1.0, 2, 3, 4, 5], [1.0] * 5])
def test_weights_that_cannot_be_judged(weights):
    assert misfit(np.array(weights), COUNTS) is None


def test_random_weights_are_not_taken_for_counts():
    random, told = np.random.default_rng(1), 0
    for _ in range(5000):
        classes = int(random.integers(4, 12))
        counts = np.floor(1000 * random.pareto(1.0, classes) + 300)
        told += misfit(np.exp(random.normal(0, 1, classes)), counts) is not None
    assert told <= 10
