"""Lists of held-out pairs beside the edges of a graph that lies in another file: rows of two ids, or two rows of many.

A model of links passes messages along the edges. Where all held-out pairs are edges, it is asked what it was shown.
Pairs that are all edges were left in: of pairs that form later, or of another
relation, some are edges and most are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import contained, distinct
from traindx_tools.on_data.table import DataSet

FEWEST = 20
"""Pairs, and edges."""
IN_GRAPH = 0.95
"""Share of the held-out pairs that are edges: of pairs that are no edges by design a few may be."""
MOST_EDGES = 20_000_000


@dataclass(frozen=True, eq=False)
class Held:
    """Held-out pairs that are edges. `hits`: bool shape (pairs,); `chance`: for one pair of such ids."""

    pairs: Shard
    field: str
    graph: Shard
    edges: str
    hits: Array
    proper: int
    both_ways: float
    """Share of these pairs that are edges in the other direction too."""
    chance: float


def held_out_edges(sets: Sequence[DataSet]) -> Iterator[Held]:
    """For each file of held-out pairs the edges of another file that hold nearly all of them."""
    shards = [s for d in sets for s in d.shards]
    graphs = [g for s in shards if s.split in ("", "train") for g in _edge_arrays(s)]
    lists = [(s, n, p) for s in shards if s.split not in ("", "train") for n, p in _pair_lists(s)]
    for shard, name, pairs in lists if graphs else []:
        found = [_held(shard, name, pairs, g) for g in graphs if g[0] is not shard and _same_ids(pairs, g[2])]
        sure = [f for f in found if f is not None]
        # a second graph without them is what a model is trained on; the whole one is there to be looked up
        if sure and len(sure) == len(found):
            yield sure[0]


def _edge_arrays(shard: Shard) -> Iterator[tuple[Shard, str, Array]]:
    """(edges, 2) of each array of whole numbers with two rows; of two columns only beside other data of nodes."""
    arrays = {n: c.values for n, c in shard.columns.items() if c.kind == "number"} | dict(shard.beside)
    for name, values in arrays.items():
        if values.dtype.kind in "iu" and values.ndim == 2 and max(values.shape) <= MOST_EDGES:
            if values.shape[0] == 2 and values.shape[1] >= FEWEST:
                yield shard, name, np.asarray(values.T)
            elif values.shape[1] == 2 and len(values) >= FEWEST and shard.beside:
                yield shard, name, np.asarray(values)


def _pair_lists(shard: Shard) -> Iterator[tuple[str, Array]]:
    """Pairs that are all that a file says of its rows: beside a label or a weight they may be edges by design."""
    for name, column in shard.columns.items():
        values = column.values
        if len(shard.columns) != 1 or shard.beside or values.dtype.kind not in "iu" or column.kind != "number":
            return
        if values.ndim == 2 and values.shape[1] == 2 and len(values) >= FEWEST:
            yield name, values
        elif values.ndim == 2 and values.shape[0] == 2 and values.shape[1] >= FEWEST:
            yield name, values.T


def _same_ids(pairs: Array, edges: Array) -> bool:
    return float(contained(distinct(pairs.reshape(-1)), distinct(edges.reshape(-1))).mean()) >= IN_GRAPH


def _held(shard: Shard, name: str, pairs: Array, graph: tuple[Shard, str, Array]) -> Held | None:
    edges = graph[2].astype(np.int64)
    u, v = pairs.astype(np.int64).T
    base = int(max(edges.max(), u.max(), v.max())) + 1
    forward, backward = distinct(edges[:, 0] * base + edges[:, 1]), distinct(edges[:, 1] * base + edges[:, 0])
    proper = u != v
    here, there = contained(u * base + v, forward) & proper, contained(u * base + v, backward) & proper
    hits = here | there
    if int(proper.sum()) < FEWEST or float(hits.sum()) < IN_GRAPH * float(proper.sum()):
        return None
    mixed = np.random.default_rng(0).permutation(v)  # frequent ids meet by chance more often than the density says
    met = contained(u * base + mixed, forward) | contained(u * base + mixed, backward)
    nodes = len(distinct(edges.reshape(-1)))
    chance = min(1.0, max(float(met.mean()), 2 * len(forward) / max(1, nodes * nodes)))
    return Held(shard, name, graph[0], graph[1], hits, int(proper.sum()), float((here & there).sum() / hits.sum()),
                chance)
