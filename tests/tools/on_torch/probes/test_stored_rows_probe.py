"""Data sets that are written to by being read, and those that are not."""

from __future__ import annotations

import sys
from collections import UserDict

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from traindx_tools.on_torch.probes.stored_rows import StoredRowsProbe
from traindx_tools.on_torch.rules import t728_reading_writes
from traindx_tools.rows.kept_rows import Column, columns_of, mark_of
from traindx_tools.rows.stored_rows import Written
from traindx_tools.rows.writing_line import WritingLine

ROWS, WIDTH = 40, 6


def shaken(x, strength=0.1):
    x += strength * np.random.default_rng(int(abs(x).sum() * 1e6)).normal(size=x.shape)  # written
    return x


class Base(Dataset):
    def __init__(self):
        self.values = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
        self.labels = np.arange(ROWS) % 2

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        return self.get(i).astype(np.float32), int(self.labels[i])


class InPlace(Base):
    def get(self, i):
        return shaken(self.values[i])


class OnACopy(Base):
    def get(self, i):
        return shaken(self.values[i].copy())


class Sometimes(Base):
    calls = 0

    def get(self, i):
        self.calls += 1
        return shaken(self.values[i]) if self.calls % 2 else self.values[i]


class CachedInPlace(Base):
    """A cache by number, which the transform writes into."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def get(self, i):
        if i not in self.cache:
            self.cache[i] = self.values[i].copy()
        return shaken(self.cache[i])


class Cached(CachedInPlace):
    def get(self, i):
        if i not in self.cache:
            self.cache[i] = self.values[i] * 2
        return self.cache[i]


class FilledCache(Base):
    """Zeros that are filled at the first visit."""

    def __init__(self):
        super().__init__()
        self.done = np.zeros((ROWS, WIDTH))

    def get(self, i):
        if not self.done[i].any():
            self.done[i] = self.values[i] * 2
        return self.done[i]


class ClippedOnce(Base):
    def get(self, i):
        np.clip(self.values[i], -0.1, 0.1, out=self.values[i])
        return self.values[i]


class Counting(Base):
    """Visits, and a weight that falls with them."""

    def __init__(self):
        super().__init__()
        self.seen, self.info = np.zeros((ROWS, 1)), [{"visits": 0, "name": f"row {i}"} for i in range(ROWS)]

    def get(self, i):
        self.seen[i] += 1
        self.info[i]["visits"] += 1
        return self.values[i]


class Prefixed(Base):
    """Rows of text and ids that grow with each visit."""

    def __init__(self):
        super().__init__()
        self.rows = [{"text": f"row {i}", "ids": [i, 1, 2, 3]} for i in range(ROWS)]

    def get(self, i):
        row = self.rows[i]
        row["ids"].insert(0, 1)
        return self.values[i]


class Parts(Base):
    """Tensors in a dict."""

    def __init__(self):
        super().__init__()
        self.data = {"x": torch.from_numpy(self.values.copy()), "note": "of the first kind"}

    def get(self, i):
        return self.data["x"][i].mul_(0.5).numpy()


class WholeRedrawn(Base):
    """New data for each epoch, made by the program and not by a read."""

    def get(self, i):
        return self.values[i]

    def draw(self, epoch):
        self.values[:] = np.random.default_rng(epoch).normal(size=(ROWS, WIDTH))


def train(dataset, epochs=3, workers=0, **more):
    model = nn.Linear(WIDTH, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    for epoch in range(epochs):
        if hasattr(dataset, "draw"):
            dataset.draw(epoch)
        for x, y in DataLoader(dataset, batch_size=8, num_workers=workers, **more):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def found(watching, dataset, **more):
    with watching(StoredRowsProbe) as w:
        train(dataset, **more)
    return w.findings


@pytest.mark.parametrize(("kind", "attribute"), [
    (InPlace, "values"), (Sometimes, "values"), (CachedInPlace, "cache"), (Prefixed, "rows"), (Parts, "data['x']")])
def test_a_dataset_that_is_written_to_by_being_read_is_named(kind, attribute, watching):
    (finding,) = found(watching, kind(), epochs=6, shuffle=True)
    assert (finding.rule, finding.measured["attribute"]) == ("T728", attribute)


def test_the_line_that_writes_is_named(watching):
    (finding,) = found(watching, InPlace())
    assert finding.where.file == __file__
    if sys.gettrace() is None:  # a measurement of coverage keeps its trace function
        with open(__file__, encoding="utf-8") as file:
            assert "# written" in file.readlines()[finding.where.line - 1]


def test_a_part_of_a_dataset_is_followed_to_the_whole(watching):
    whole = InPlace()
    (finding,) = found(watching, Subset(Subset(whole, list(range(0, ROWS, 2))), np.arange(10)))
    assert finding.measured["watched"] == 10


@pytest.mark.parametrize("kind", [OnACopy, Cached, FilledCache, ClippedOnce, Counting, WholeRedrawn])
def test_caches_copies_counts_and_new_data_are_left_alone(kind, watching):
    assert found(watching, kind()) == []


def test_tensors_and_plain_lists(watching):
    assert found(watching, TensorDataset(torch.randn(ROWS, WIDTH), torch.arange(ROWS) % 2)) == []
    rows = [(torch.randn(WIDTH), i % 2) for i in range(ROWS)]

    class Halving(list):
        def __getitem__(self, i):
            return list.__getitem__(self, i)

    assert found(watching, rows) == []
    assert found(watching, Halving(rows)) == []


def test_one_epoch_says_nothing_yet(watching):
    assert found(watching, InPlace(), epochs=1) == []


def test_results_are_the_same_and_no_trace_function_is_left(watching):
    before = sys.gettrace()
    torch.manual_seed(0)
    alone = train(InPlace(), shuffle=True)
    torch.manual_seed(0)
    with watching(StoredRowsProbe):
        assert train(InPlace(), shuffle=True) == alone
    assert sys.gettrace() is before


class Failing(InPlace):
    calls = 0

    def get(self, i):
        self.calls += 1
        if self.calls > 100:
            raise OSError("the disk is gone")
        return super().get(i)


def test_a_read_that_fails_leaves_nothing_behind(watching):
    before = sys.gettrace()
    with pytest.raises(OSError, match="the disk is gone"), watching(StoredRowsProbe):
        train(Failing())
    assert sys.gettrace() is before


class Odd(Base):
    def __init__(self):
        super().__init__()
        self.odd = [object()] * ROWS
        self.more = UserDict(a=1)
        self.texts = np.array(["a"] * ROWS)
        self.by_name = {f"{i}": 1 for i in range(ROWS)}

    def get(self, i):
        return self.values[i]


class NoLength(Base):
    def __len__(self):
        raise TypeError("endless")


def test_what_a_dataset_keeps():
    assert [c.path for c in columns_of(Odd())] == ["values", "odd"]
    assert columns_of(NoLength()) == columns_of(object()) == ()
    assert [c.path for c in columns_of([1, 2])] == [""]
    assert [c.path for c in columns_of(TensorDataset(torch.zeros(3, 4), torch.zeros(3)))] == ["tensors[0]"]
    assert Column("gone").of(Base()) is None
    assert Column("values", "x").of(Base()) is None


@pytest.mark.parametrize("entry", [3.0, None, object(), [1, 2], [[object()]], np.zeros(2), np.array([None] * 5),
                                   torch.zeros(5, device="meta"), {"visits": 3, "weight": 0.5}])
def test_an_entry_that_cannot_be_compared_has_no_mark(entry):
    assert mark_of([entry], 0) is None


@pytest.mark.parametrize("entry", ["text", np.zeros(5), torch.zeros(5, dtype=torch.bfloat16), [1, 2, 3, 4],
                                   {"x": np.zeros(4)}, [np.zeros(4), 1]])
def test_an_entry_has_a_mark(entry):
    assert isinstance(mark_of([entry], 0), int)
    assert mark_of([entry], 1) is None


def test_the_line_of_a_call_is_that_of_its_inside():
    state, follow = [0], None

    def inner():
        state[0] += 1
        return state

    follow = WritingLine(lambda: state[0] > 0)
    follow.begin()
    inner()
    follow.end()
    if sys.gettrace() is None:
        assert follow.found == (__file__, inner.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(("rows", "written", "said"), [(24, 24, 1), (24, 5, 0), (24, 6, 1), (2, 2, 1), (2, 1, 0),
                                                       (0, 0, 0), (3, 3, 1), (8, 2, 0)])
def test_how_many_rows_it_takes(rows, written, said):
    assert len(list(t728_reading_writes.check(Written("Set", "x", rows, written, 3), 10))) == said
