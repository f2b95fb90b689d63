"""Texts and runs of ids that are another one but for case, marks and a few words: which runs of words they share.

Of each row the runs of five words, letters and digits alone, are hashed. Runs that many training rows hold (a greeting,
a licence) tell nothing. A row is a near copy where most of its other runs stand in one training row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.summary import mixed

WORDS = 5
LEAST = 6
"""Runs that a row must hold."""
COMMON = 3
"""Training rows from which on a run is a phrase."""
MOST_ROWS, MOST_RUNS = 20_000, 400
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Runs:
    """Hashes of runs, row by row: row i holds `hashes[offsets[i]:offsets[i + 1]]`; `rows` is which it is."""

    hashes: Array
    offsets: Array
    rows: Array


def runs_of(column: Column) -> Runs | None:
    """Of texts of words, and of sequences of ids; None of anything else."""
    rows = np.arange(column.rows)[:: max(1, -(-column.rows // MOST_ROWS))]
    if column.kind == "text" and len(column.texts) == column.rows:
        items = [_hashes(_WORD.findall(column.texts[i].casefold())[:MOST_RUNS]) for i in rows]
    else:
        return None
    runs = [_runs(i) for i in items]
    if not runs or float(np.median([len(r) for r in runs])) < LEAST:
        return None
    return Runs(np.concatenate(runs), np.concatenate([[0], np.cumsum([len(r) for r in runs])]), rows)


def _hashes(words: Sequence[str]) -> Array:
    return np.fromiter((hash(w) & 0x7FFFFFFFFFFFFFFF for w in words), np.uint64, len(words))


def _runs(ids: Array) -> Array:
    if len(ids) < WORDS:
        return np.empty(0, np.uint64)
    out = np.zeros(len(ids) - WORDS + 1, np.uint64)
    for k in range(WORDS):
        out = mixed(out * np.uint64(31) + ids[k:len(ids) - WORDS + 1 + k] + np.uint64(k))
    return np.unique(out)


def near_copies(mine: Runs, known: Runs, itself: bool = False) -> tuple[Array, Array]:
    """float64 and int64 shape (rows,): the largest share of a row's runs that stand in one known row, and which it is.

    `itself`: both are the same rows, and a row is no copy of itself.
    """
    kinds, counts = np.unique(known.hashes, return_counts=True)
    rare = kinds[counts <= COMMON + itself]
    owner = np.repeat(np.arange(len(known.rows)), np.diff(known.offsets))
    order = np.argsort(known.hashes, kind="stable")
    held, owner = known.hashes[order], owner[order]
    shares, which = np.zeros(len(mine.rows)), np.full(len(mine.rows), -1)
    for i in range(len(mine.rows)):
        own = mine.hashes[mine.offsets[i]:mine.offsets[i + 1]]
        own = own[~np.isin(own, kinds, assume_unique=True) | np.isin(own, rare, assume_unique=True)]
        if len(own) < LEAST:
            continue
        low, high = np.searchsorted(held, own, "left"), np.searchsorted(held, own, "right")
        where = np.concatenate([owner[a:b] for a, b in zip(low, high, strict=True)]) if (high > low).any() else own[:0]
        where = where[where != i] if itself else where
        if len(where):
            rows, hits = np.unique(where, return_counts=True)
            shares[i], which[i] = hits.max() / len(own), int(rows[hits.argmax()])
    return shares, which
