"""Rows that leak into the evaluation, change in place, are drawn anew or by no loader at all."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from row_programs import CLASSES, fit, loader, net, rows, split  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler  # noqa: E402

from traindx_tools.on_torch.probes.rows import RowProbe  # noqa: E402


@pytest.mark.parametrize(("shared", "kinds"), [(0, []), (12, ["leak"]), (40, ["same-data"])])
@pytest.mark.parametrize("epochs", [1, 3])
def test_evaluation_rows_that_were_trained_on(shared, kinds, epochs, watching):
    x, y = torch.randn(80, 8), torch.randint(0, 4, (80,))
    held = torch.cat([x[:shared], torch.randn(40 - shared, 8)])
    held = held[torch.randperm(40)]
    with watching(RowProbe) as w:
        fit(nn.Linear(8, 4), loader(x, y), DataLoader(TensorDataset(held, torch.zeros(40)), 10), epochs=epochs)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T711"] == kinds
    assert len(w.loud) == ("leak" in kinds)


def test_training_data_that_is_evaluated_in_one_piece_is_no_leak(watching):
    """Of rows that were augmented, those of a table are known by their numbers, and after one epoch not all of them."""
    x, y, *_ = split()
    held = torch.randn(60, x.shape[1])
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(RowProbe) as w:
        for _ in range(3):
            for ix in torch.randperm(len(x))[:int(0.8 * len(x))].split(20):
                F.cross_entropy(model(x[ix]), y[ix]).backward()
                optimizer.step()
                optimizer.zero_grad()
            x, y = x[:int(0.9 * len(x))], y[:int(0.9 * len(y))]
            model.eval()
            with torch.no_grad():
                model(x), model(held)
            model.train()
    assert "T711" not in w.rules


class Noisy(TensorDataset):
    """Another augmentation each time."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + 0.5 * torch.randn_like(x), y


@pytest.mark.parametrize(("first", "kinds"), [(200, []), (180, ["leak"])])
def test_parts_of_one_dataset_that_overlap_are_known_by_number(first, kinds, watching):
    data = Noisy(*rows(280))
    train, held = Subset(data, range(200)), Subset(data, range(first, first + 80))
    with watching(RowProbe) as w:
        fit(net(), DataLoader(train, 20, shuffle=True), DataLoader(held, 20, shuffle=True), epochs=2)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T711"] == kinds


def test_rows_of_few_values_recur_by_nature(watching):
    x = torch.randint(0, 2, (400, 4)).float()
    with watching(RowProbe) as w:
        fit(nn.Linear(4, 2), loader(x, x[:, 0].long()), loader(torch.randint(0, 2, (100, 4)).float(),
                                                             torch.zeros(100), False), epochs=2)
    assert "T711" not in w.rules


def test_what_is_evaluated_first_and_trained_on_afterwards_leaks_nothing(watching):
    x, y, *_ = split()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(RowProbe) as w:
        for k in range(0, 800, 40):
            part = slice(k, k + 40)
            model.eval()
            with torch.no_grad():
                model(x[part])
            model.train()
            F.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert w.findings == []


class InPlace(TensorDataset):
    """Normalises what it keeps."""

    def __getitem__(self, index):
        x = self.tensors[0][index]
        return x.div_(2.0), self.tensors[1][index]


class Drawn(TensorDataset):
    """Draws a label, or turns the row as its label says."""

    def __init__(self, x, y, turned):
        super().__init__(x, y)
        self.turned = turned

    def __getitem__(self, index):
        label = int(torch.randint(0, CLASSES, ()))
        x = self.tensors[0][index]
        return (x.roll(4 * label) if self.turned else x), label


def test_rows_that_are_scaled_in_place(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), DataLoader(InPlace(x, y), 32, shuffle=True), epochs=4)
    assert w.one("T718").measured["kind"] == "scaled-each-visit"
    assert w.one("T718").measured["ratio"] == pytest.approx(0.25, rel=0.01)


@pytest.mark.parametrize(("turned", "kinds"), [(False, ["labels-redrawn"]), (True, [])])
def test_labels_that_are_drawn_anew(turned, kinds, watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Drawn(x, y, turned), 32, shuffle=True), epochs=3)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T718"] == kinds


def test_augmentation_is_no_change(watching):
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Noisy(*rows(400)), 32, shuffle=True), epochs=5)
    assert w.loud == []


def test_rows_that_no_loader_draws(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), DataLoader(TensorDataset(x, y), 32, sampler=torch.randperm(600).tolist()), epochs=5)
    found = w.one("T715")
    assert (found.measured["first"], found.measured["last"], found.measured["rows"]) == (600, 799, 200)
    assert w.loud == []


def test_rows_that_another_part_of_the_dataset_draws_are_drawn(watching):
    data = TensorDataset(*rows(1000))
    fold = torch.arange(1000) % 5 == 0
    train = Subset(data, (~fold).nonzero()[:, 0].tolist())
    with watching(RowProbe) as w:
        fit(net(), DataLoader(train, 32, shuffle=True), DataLoader(data, 32, sampler=fold.nonzero()[:, 0].tolist()),
            epochs=5)
    assert w.findings == []


def test_a_dropped_last_batch_and_sampling_with_weights_are_left_alone(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y, False, drop_last=True), epochs=4)
        fit(net(), DataLoader(TensorDataset(x, y), 32, sampler=WeightedRandomSampler(torch.ones(800), 800)), epochs=6)
    assert "T715" not in w.rules


def test_the_rows_of_the_jumps_are_named(watching):
    x, y, *_ = split()
    x[[17, 93]] *= 200
    y[[17, 93]] = torch.randint(0, CLASSES, (2,))
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), epochs=6, rate=1e-4)
    found = w.one("T716")
    assert found.measured["kind"] == "extreme-inputs"
    assert found.measured["row"] in (17, 93)
    assert found.measured["rows"] <= 2
