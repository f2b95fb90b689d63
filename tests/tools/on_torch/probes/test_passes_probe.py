"""T731: passes that end behind the same row while the order is fixed; limits that shuffle, trials and evaluations."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

from traindx_tools.on_torch.probes.passes import PassesProbe  # noqa: E402
from traindx_tools.rows.passes import Passes  # noqa: E402

ROWS, BATCH, EPOCHS = 400, 10, 5


def rows(count: int = ROWS):
    return TensorDataset(torch.randn(count, 4, generator=torch.Generator().manual_seed(0)), torch.zeros(count, 1))


class Blocks(Dataset):
    """Items that hold many rows."""

    def __len__(self):
        return 50

    def __getitem__(self, number):
        return torch.randn(8, 4), torch.zeros(8, 1)


class Stream(IterableDataset):
    def __iter__(self):
        yield from ((torch.randn(4), torch.zeros(1)) for _ in range(ROWS))


def fit(loader, limit=None, epochs=EPOCHS, held_out=None):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for _ in range(epochs):
        model.train()
        for x, y in itertools.islice(loader, limit):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, _ in itertools.islice(held_out or (), 20):
                model(x)


@pytest.mark.parametrize(("loader", "limit", "items", "given"), [
    (DataLoader(rows(), BATCH), 24, ROWS, 240), (DataLoader(Blocks(), batch_size=None), 30, 50, 30)],
    ids=["rows", "blocks of rows"])
def test_rows_behind_the_limit_are_never_trained_on(loader, limit, items, given, watching):
    with watching(PassesProbe) as w:
        fit(loader, limit)
    found = w.one("T731")
    assert (found.bearing.value, found.severity.value) == ("cause", "high")
    assert (found.measured["items"], found.measured["given"], found.measured["passes"]) == (items, given, EPOCHS - 1)
    assert found.where.file == __file__


def test_the_shorter_of_two_loaders_ends_the_epoch(watching):
    with watching(PassesProbe) as w:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 1e-2)
        long, short = DataLoader(rows(), BATCH), DataLoader(rows(200), BATCH, shuffle=True)
        for _ in range(EPOCHS):
            for (x, y), (other, _) in zip(long, short, strict=False):
                optimizer.zero_grad()
                ((model(x) - y).square().mean() + (model(other) - model(other.flip(0))).square().mean()).backward()
                optimizer.step()
    assert w.one("T731").measured["given"] in (200, 210)


@pytest.mark.parametrize(("loader", "limit"), [
    (DataLoader(rows(), BATCH, shuffle=True), 24), (DataLoader(rows(), BATCH), None),
    (DataLoader(rows(395), BATCH, drop_last=True), None), (DataLoader(rows(), BATCH), 3),
    (DataLoader(rows(), BATCH, sampler=list(range(240))), None), (DataLoader(Blocks(), batch_size=None), None)],
    ids=["other rows in each pass", "whole passes", "a dropped batch", "a trial", "a part on purpose", "all blocks"])
def test_what_leaves_rows_out_on_purpose_or_for_one_pass(loader, limit, watching):
    with watching(PassesProbe) as w:
        fit(loader, limit)
    assert w.findings == []


def test_an_evaluation_of_a_part_makes_no_steps_and_few_passes_say_nothing(watching):
    with watching(PassesProbe) as w:
        fit(DataLoader(rows(), BATCH), held_out=DataLoader(rows(), BATCH))
        fit(DataLoader(rows(), BATCH), 24, epochs=3)
    assert w.findings == []


def test_broken_inputs(watching):
    with watching(PassesProbe) as w:
        fit(DataLoader(Stream(), BATCH), 20)
        fit(DataLoader(rows(), batch_sampler=[[3, 1], [2], [], [5, 4]][:2]))
    assert w.findings == []
    assert Passes(0).left_early() is None
    empty = Passes(0)
    for number in range(5):
        empty.take(number, 0, 0, number)
    assert empty.left_early() is None
