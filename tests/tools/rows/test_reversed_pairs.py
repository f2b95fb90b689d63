"""Pairs in both orders, without a framework: samples, chance, and what is told."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Location
from traindx_tools.on_torch.rules import t719_reversed_pairs
from traindx_tools.rows.pair_books import PairBooks
from traindx_tools.rows.pairs import MOST_PAIRS, PairGroup, codes, in_sample
from traindx_tools.rows.reversed_pairs import reversed_pairs
from traindx_tools.triage import rank


def relation(nodes, edges, random):
    """Both orders of each pair, shuffled."""
    u, v = random.integers(0, nodes, (2, edges))
    pairs = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)], 1)[u != v], axis=0)
    rows = np.concatenate([pairs, pairs[:, ::-1]])
    return rows[random.permutation(len(rows))]


def group(rows, times=1):
    made = PairGroup()
    for _ in range(times):
        for part in np.array_split(rows, max(1, len(rows) // 5000)):
            made.take(part[:, 0], part[:, 1], 1)
    return made


def test_both_orders_are_in_a_sample_or_neither():
    u, v = np.random.default_rng(0).integers(-2**62, 2**62, (2, 4000))
    assert (in_sample(u, v, 8) == in_sample(v, u, 8)).all()
    assert 0.09 < in_sample(u, v, 8).mean() < 0.16
    assert (codes(u, v) != codes(v, u)).all()


def test_a_sample_of_many_pairs_tells_the_same_share():
    rows = relation(20_000, 150_000, np.random.default_rng(0))
    cut = int(0.8 * len(rows))
    trained = group(rows[:cut])
    ((_, seen),) = reversed_pairs({0: trained}, {0: group(rows[cut:])})
    assert seen.rate > 1
    assert len(trained.kept()) <= MOST_PAIRS
    assert seen.share == pytest.approx(0.8, abs=0.02)
    assert seen.both_ways > 0.99
    assert seen.chance < 0.01


def test_negatives_are_forgotten_before_a_sample_is_taken():
    random = np.random.default_rng(0)
    rows = relation(2000, 3000, random)
    trained = PairGroup()
    for _ in range(60):
        both = np.concatenate([rows[:5000], random.integers(0, 2000, (5000, 2))])
        trained.take(both[:, 0], both[:, 1], 1)
    assert trained.kept().count.max() >= 60
    assert trained.rate == 1
    ((_, seen),) = reversed_pairs({0: trained}, {0: group(rows[5000:])})
    assert seen.hits > 0.7 * len(rows[5000:])


def test_frequent_ids_meet_by_chance():
    """Hubs: most pairs join one of ten nodes to any other, and each order is drawn by itself."""
    random = np.random.default_rng(0)
    hub, other = random.integers(0, 10, 6000), random.integers(0, 300, 6000)
    rows = np.concatenate([np.stack([hub, other], 1), np.stack([other, hub], 1)])[random.permutation(12_000)]
    assert list(reversed_pairs({0: group(rows[:9000])}, {0: group(rows[9000:])})) == []


@pytest.mark.parametrize("rows", [np.zeros((0, 2), np.int64), np.zeros((50, 2), np.int64)], ids=["none", "one value"])
def test_pairs_that_say_nothing(rows):
    assert list(reversed_pairs({0: group(rows)}, {0: group(rows)})) == []
    assert list(reversed_pairs({}, {})) == []


def test_books_are_bounded():
    books: PairBooks[int] = PairBooks()
    u = np.arange(30)
    for k in range(500):
        books.train(("table", k % 30), k, u, u[::-1], 1, ids=True)
        books.evaluate(("table", k % 30), k, k, u, u[::-1], 1, ids=True, ordinal=1)
    assert list(books.told()) == []


def test_labels_that_are_not_whole_are_no_labels():
    books: PairBooks[int] = PairBooks()
    u = np.arange(30)
    for label in (np.full(30, np.nan), np.full(30, 0.5), np.arange(30.0), np.zeros(7)):
        books.train("pairs", 0, u, u[::-1], 1, ids=True, label=label)
    assert list(books.told()) == []


def test_fixed_negatives_are_told_by_their_label():
    random = np.random.default_rng(0)
    rows, wrong = relation(400, 1500, random), random.integers(0, 400, (4000, 2))
    books: PairBooks[str] = PairBooks()
    cut = int(0.8 * len(rows))
    both = np.concatenate([rows[:cut], wrong])
    label = np.concatenate([np.ones(cut), np.zeros(len(wrong))])
    for step in range(3):
        books.train("pairs", 0, both[:, 0], both[:, 1], step, ids=True, label=label)
    books.evaluate("pairs", "here", "here", rows[cut:, 0], rows[cut:, 1], 3, ids=True, ordinal=1)
    (told,) = books.told()
    assert told.at == "here"
    assert told.seen.share == pytest.approx(0.8, abs=0.05)


def test_it_speaks_for_leaked_evaluation_data():
    rows = relation(400, 1500, np.random.default_rng(0))
    ((_, seen),) = reversed_pairs({0: group(rows[:2000])}, {0: group(rows[2000:])})
    (found,) = t719_reversed_pairs.check(seen, Location(file="train.py", line=7, step=40.0), "train.py:20", True)
    first = rank([found], {m.id: m for m in load_catalog().values()}, "the test AUC is too good to be true")[0]
    assert first.mode.id == "data.leakage"
    assert first.proven
    assert "trained on as (" in found.statement
    assert "called at train.py:20" in found.statement
