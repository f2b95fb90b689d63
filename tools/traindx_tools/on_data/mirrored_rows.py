"""Rows of held-out data that are training rows with the two ids of a pair exchanged, under the same third field.

Where pairs are dense (every second pair of drugs was measured in some cell line) that (v, u) is in training says
nothing; that (v, u) is there for the same cell line does. Return matches of one season and answers of one day are such
rows as well, and no copies: a number of the row has to be nearly the same in both, and not in other rows of that third
field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.roles import is_identifier, is_time, keys
from traindx_tools.on_data.shard import Shard

KINDS = 400
"""Values of the third field, at most, and half as many as rows."""
MOST_FIELDS = 6
SAME = 0.9
"""Rank correlation of a number with that of the row the other way round, at least."""
OTHERS = 0.6
"""And at most with that of another row of the same third field."""
FEWEST = 20


@dataclass(frozen=True, eq=False)
class Mirrored:
    """Which rows of a shard are in the training data the other way round, by a third field, and what says so."""

    third: str
    rows: Array
    """bool shape (rows,)."""
    chance: float
    """Of one row, partners exchanged at random."""
    within: float
    """The share of training rows that are so within the training data."""
    field: str
    """A number that is the same in both."""
    same: float


def thirds(shards: Sequence[Shard], pair: tuple[str, ...]) -> list[str]:
    """Fields of few kinds, in all shards."""
    found = []
    for name, column in shards[0].columns.items():
        fits = name not in pair and all(n.columns.get(name) is not None and n.columns[name].rows == n.rows
                                        and not n.columns[name].row_shape for n in shards)
        whole = column.kind == "text" or (column.kind == "number" and column.values.dtype.kind in "iu")
        if fits and whole and column.missing is None and 2 <= len(np.unique(keys(column))) <= min(
                KINDS, column.rows // 2):
            found.append(name)
    return found[:MOST_FIELDS]


def mirrored(shard: Shard, train: Sequence[Shard], ends: tuple[Array, Array], others: tuple[Array, Array], third: str
             ) -> Mirrored | None:
    """Of a shard with the ends of its pairs and those of the training data; None where too few are, or none the same.
    """
    u, v, w, left, right, there = _numbered(*ends, keys(shard.columns[third]), *others,
                                            np.concatenate([keys(s.columns[third]) for s in train]))
    size = int(max(u.max(), v.max(), left.max(), right.max())) + 1, int(max(w.max(), there.max())) + 1
    known = _codes(left, right, there, *size)
    order = np.argsort(known, kind="stable")
    known = known[order]
    at = _looked_up(known, order, _codes(v, u, w, *size))
    hits = (at >= 0) & (u != v)
    mixed = np.random.default_rng(0).permutation(v)
    by_chance = (_looked_up(known, order, _codes(mixed, u, w, *size)) >= 0) & (u != mixed)
    within = (_looked_up(known, order, _codes(right, left, there, *size)) >= 0) & (left != right)
    if hits.sum() < FEWEST:
        return None
    told = max(_agreements(shard, train, hits, at, w, there), default=("", 0.0), key=lambda f: f[1])
    return Mirrored(third, hits, float(by_chance.mean()), float(within.mean()), *told) if told[0] else None


def _numbered(u: Array, v: Array, w: Array, left: Array, right: Array, there: Array) -> tuple[Array, ...]:
    """The same ids as small whole numbers."""
    _, ids = np.unique(np.concatenate([u, v, left, right]), return_inverse=True)
    _, kinds = np.unique(np.concatenate([w, there]), return_inverse=True)
    one, two, three, four = np.split(ids.reshape(-1).astype(np.int64), np.cumsum([len(u), len(v), len(left)]))
    return one, two, kinds[: len(w)].astype(np.int64), three, four, kinds[len(w):].astype(np.int64)


def _codes(one: Array, two: Array, kind: Array, ids: int, kinds: int) -> Array:
    return (one * ids + two) * kinds + kind


def _looked_up(sorted_codes: Array, order: Array, wanted: Array) -> Array:
    """The training row of each code, or -1."""
    at = np.minimum(np.searchsorted(sorted_codes, wanted), len(sorted_codes) - 1)
    return np.where(sorted_codes[at] == wanted, order[at], -1)


def _agreements(shard: Shard, train: Sequence[Shard], hits: Array, at: Array, w: Array, there: Array
                ) -> Iterator[tuple[str, float]]:
    """Numbers that are the same in both rows, and not in two rows of one value of the third field alone."""
    own, twins = np.flatnonzero(hits), at[hits]
    rng = np.random.default_rng(0)
    strangers = rng.integers(0, len(there), len(own))
    for kind in np.unique(w[own]):
        alike, pool = np.flatnonzero(w[own] == kind), np.flatnonzero(there == kind)
        if len(pool):
            strangers[alike] = rng.choice(pool, len(alike))
    for name, column in shard.columns.items():
        if not column.is_float or column.row_shape or is_time(name) or is_identifier(column):
            continue
        theirs = [s.columns.get(name) for s in train]
        if any(c is None or c.rows != s.rows or c.kind != "number" for c, s in zip(theirs, train, strict=True)):
            continue
        every = np.concatenate([np.asarray(c.values, np.float64) for c in theirs if c is not None])
        mine = np.asarray(column.values, np.float64)[own]
        same, usual = (_rank_correlation(mine, every[at_rows]) for at_rows in (twins, strangers))
        if same >= SAME and usual <= OTHERS:
            yield name, same


def _rank_correlation(one: Array, two: Array) -> float:
    sure = np.isfinite(one) & np.isfinite(two)
    if sure.sum() < FEWEST or len(np.unique(one[sure])) < FEWEST // 2 or len(np.unique(two[sure])) < FEWEST // 2:
        return 0.0
    ranks = [np.argsort(np.argsort(x[sure], kind="stable"), kind="stable") for x in (one, two)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
