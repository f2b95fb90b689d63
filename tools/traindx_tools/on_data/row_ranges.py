"""The rows of each file, or of each group, cut into ranges of their order: it finds what changes from some row on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.places import short
from traindx_tools.on_data.shard import Shard

FEWEST = 60
"""Rows of a range."""
MOST_PARTS = 64
RANGES = (8, 4)


def by_ranges(group: Sequence[Shard], cut: Cut | None = None) -> Iterator[Cut]:
    """Equal ranges of the rows of each file; of each group of `cut`, in the order in which its rows are stored."""
    names = cut.names if cut is not None else tuple(short(s) for s in group)
    of = cut.member if cut is not None else [np.full(s.rows, i, np.int64) for i, s in enumerate(group)]
    every = np.concatenate(list(of))
    counts = np.bincount(every[every >= 0], minlength=len(names))
    ranges = next((r for r in RANGES if r * len(names) <= MOST_PARTS and counts.min() >= r * FEWEST), 0)
    if not ranges:
        return
    part = np.full(len(every), -1, np.int64)
    told = []
    for k, name in enumerate(names):
        own = np.flatnonzero(every == k)
        part[own] = k * ranges + np.arange(len(own)) * ranges // len(own)
        edges = -(-np.arange(ranges + 1) * len(own) // ranges)
        said = name if cut is None else cut.told(k)
        told += [f"rows {a}..{b - 1} of {said}" for a, b in pairwise(edges.tolist())]
    ends = np.cumsum([s.rows for s in group])[:-1]
    yield Cut("", tuple(told), tuple(np.split(part, ends)), True)
