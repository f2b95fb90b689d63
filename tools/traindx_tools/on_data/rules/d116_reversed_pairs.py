"""Held-out pairs (u, v) are in training as (v, u).

Where a relation has no direction, such a pair is the same fact. How often a pair is there both ways by chance follows
from the number of pairs and of ids; how often it is so within the training data tells whether the relation has a
direction: of a directed relation that is sometimes returned nothing is said. That one file that is not split yet
holds both directions of nearly every pair is a remark: a random split by row would put them on both sides.
Held-out pairs that are edges of the graph beside them, along which messages are passed, are told as well (`edges.py`).
Where pairs are dense they are looked at under a third field, and a number of both rows has to be the same
(`mirrored_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.edges import IN_GRAPH, held_out_edges
from traindx_tools.on_data.mirrored_rows import SAME, mirrored, thirds
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.summary import contained, distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.3
FEWEST = 20
BOTH_WAYS = 0.8
WITHIN = 3.0

RULE = Rule(
    id="D116",
    name="reversed-pairs",
    title="Held-out pairs are in the training data the other way round",
    severity=Severity.HIGH,
    sees="two fields of ids, or one field of pairs, across splits",
    matters="The model is asked what it was told.",
    alike=("A directed relation that is sometimes returned: follows, replies, citations.",
           "Pairs that form later, or carry a label: some are edges, or all by design.",
           "Return matches of a season, answers of a day: no number of the row is the same in both."),
    confirm=("Print the named rows and their reverse.", "Split by unordered pair."),
    thresholds={
        "share": Threshold(SHARE, "of held-out pairs", "relations with a direction are returned less often"),
        "same": Threshold(SAME, "rank correlation", "of a number of dense pairs with that of its reverse, at least"),
        "within": Threshold(WITHIN, "times", "the share within the training data, of dense pairs under a third field"),
        "in_graph": Threshold(IN_GRAPH, "of held-out pairs", "that are edges of a graph in another file"),
        "both_ways": Threshold(BOTH_WAYS, "of the pairs of one file", "a remark: the relation has no direction"),
        "level": Threshold(LEVEL, "probability", "by chance, from the density of pairs, over all shards"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard."""
    yield from _in_graphs(view)
    for data in view.sets:
        yield from _in_one_set(data, view.comparisons)
        train = [s for s in data.splits.get("train", ()) if s.columns]
        for names in _pair_fields(data, train):
            left, right = (np.concatenate([_ends(s, names)[k] for s in train]) for k in (0, 1))
            for shard in (
                s for s in data.shards if s.split not in ("", "train") and all(n in s.columns for n in names)
            ):
                found = list(_reversed(shard, names, left, right, view.comparisons))
                yield from found or _mirrored(shard, train, names, (left, right), view.comparisons)


def _in_graphs(view: View) -> Iterator[Finding]:
    """Held-out pairs that are edges of the graph that lies beside them."""
    for held in held_out_edges(view.sets):
        hits = int(held.hits.sum())
        p = share_tail(hits, held.proper, min(1.0, 2.0 * held.chance)) * view.comparisons
        if p > LEVEL:
            continue
        where = np.flatnonzero(held.hits)
        ways = ", in both directions" if held.both_ways >= BOTH_WAYS else ""
        yield RULE.finding(
            f"{hits:,} of {held.proper:,} pairs of {short(held.pairs)} ({percent(hits / held.proper)}) are edges "
            f"in {held.edges} of {short(held.graph)}{ways}, {percent(held.chance)} by chance: the held-out pairs leak "
            f"into the graph along which messages are passed: {rows(held.pairs, where)}",
            place(held.pairs, held.field),
            held.pairs.name,
            bearing=Bearing.CAUSE,
            title="Held-out pairs are edges of the graph",
            measured={"share": hits / held.proper, "chance": held.chance, "p": p, "kind": "in-graph",
                      "field": held.field, "edges": held.edges, "graph": short(held.graph),
                      "rows": tuple(int(i) for i in where[:20]), "shard": short(held.pairs)},
        )


def _in_one_set(data: DataSet, comparisons: int) -> Iterator[Finding]:
    """A remark where files without a split hold most pairs in both directions: a split by row would share them."""
    shards = [s for s in data.splits.get("", ()) if s.columns and s.numbers is None]
    if not shards or set(data.splits) != {""}:
        return
    for names in _pair_fields(data, shards):
        u, v = (np.concatenate([_ends(s, names)[k] for s in shards]) for k in (0, 1))
        hits, chance = _returned(u, v, u, v)
        proper = int((u != v).sum())
        share = float(hits.sum() / max(1, proper))
        p = share_tail(int(hits.sum()), proper, min(1.0, 2.0 * chance)) * comparisons
        if proper < FEWEST or share < BOTH_WAYS or p > LEVEL:
            continue
        first = shards[0]
        where = np.flatnonzero(hits[: len(_ends(first, names)[0])])
        a, b = (u[where[:1]], v[where[:1]])
        other = np.flatnonzero((u == b) & (v == a)) if len(where) else where
        twin = f" (row {int(where[0])} and row {int(other[0])})" if len(where) and len(other) else ""
        yield RULE.finding(
            f"{int(hits.sum()):,} of {proper:,} pairs ({', '.join(names)}) of {short(first)} ({percent(share)}) are in "
            f"it in both directions{twin}: the relation has none. Of a random split by row that holds out a tenth, the "
            f"reverse of {percent(0.9 * share)} of the held-out pairs is in training; split by unordered pair",
            place(first, names[0]),
            first.name,
            bearing=Bearing.COMPANION,
            severity=Severity.INFO,
            title="An edge list holds both directions of each pair",
            measured={"share": share, "chance": chance, "p": p, "kind": "both-directions", "shard": short(first),
                      "rows": tuple(int(i) for i in where[:20])},
        )


def _pair_fields(data: DataSet, train: list[Shard]) -> Iterator[tuple[str, ...]]:
    """Fields that hold ids of one kind.

    An integer array of two columns or two rows, or two fields of whole numbers or words that share their values.
    """
    if not train:
        return
    first = train[0]
    ids = [n for n, c in first.columns.items() if _ids(c) is not None]
    for name in ids:
        shape = first.columns[name].row_shape
        if shape == (2,) or (first.rows == 2 and len(shape) == 1 and shape[0] >= FEWEST):
            yield (name,)
    scalars = [n for n in ids if not first.columns[n].row_shape]
    if len(scalars) < 2:
        return  # distinct values of a long file of tokens are dear
    scalars = [n for n in scalars if first.summaries[n].distinct_rows >= 10]
    for i, a in enumerate(scalars[:8]):
        for b in scalars[i + 1 : 8]:
            if first.columns[a].kind != first.columns[b].kind:
                continue
            x, y = (distinct(_whole(first.columns[n])) for n in (a, b))
            if len(np.intersect1d(x, y)) >= 0.5 * min(len(x), len(y)) and len(x) < 0.9 * first.rows:
                yield (a, b)


def _ids(column: Column) -> Array | None:
    """Whole numbers, or hashes of texts."""
    if column.kind == "text":
        return column.digests if column.texts else None
    return column.values if column.kind == "number" and column.values.dtype.kind in "iu" else None


def _whole(column: Column) -> Array:
    found = _ids(column)
    return found if found is not None else np.empty(0, np.int64)


def _ends(shard: Shard, names: tuple[str, ...]) -> tuple[Array, Array]:
    if any(n not in shard.columns for n in names):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first = _whole(shard.columns[names[0]])
    if not len(first):  # numbers of another kind in this file
        return first, first
    if len(names) == 1:
        return (first[:, 0], first[:, 1]) if first.ndim == 2 and first.shape[1] == 2 else (first[0], first[1])
    return first, _whole(shard.columns[names[1]])


def _returned(u: Array, v: Array, left: Array, right: Array) -> tuple[Array, float]:
    """bool shape (pairs,): which pairs (u, v) are among (left, right) as (v, u); and the chance of it for one."""
    _, ids = np.unique(np.concatenate([u, v, left, right]), return_inverse=True)
    ids = ids.reshape(-1).astype(np.int64)
    u, v, left, right = np.split(ids, np.cumsum([len(u), len(v), len(left)]))
    base = int(ids.max(initial=0)) + 1
    forward = distinct(left * base + right)
    hits = (u != v) & contained(v * base + u, forward)
    nodes = len(distinct(np.concatenate([left, right])))
    # Frequent ids meet by chance more often than the density says: partners exchanged at random tell how often.
    mixed = np.random.default_rng(0).permutation(v)
    apart = u != mixed
    met = float((apart & contained(mixed * base + u, forward)).sum() / max(1, apart.sum()))
    return hits, min(1.0, max(met, len(forward) / max(1, nodes * nodes)))


def _reversed(shard: Shard, names: tuple[str, ...], left: Array, right: Array, comparisons: int) -> Iterator[Finding]:
    u, v = _ends(shard, names)
    proper = u != v
    hits, chance = _returned(u, v, left, right)
    if proper.sum() < FEWEST:
        return
    share = float(hits.sum() / proper.sum())
    p = share_tail(int(hits.sum()), int(proper.sum()), min(1.0, 2.0 * chance)) * comparisons
    if share < SHARE or p > LEVEL:
        return
    where = np.flatnonzero(hits)
    yield RULE.finding(
        f"{int(hits.sum()):,} of {int(proper.sum()):,} pairs ({', '.join(names)}) of {short(shard)} "
        f"({percent(share)}) are in "
        f"the training data the other way round, {percent(chance)} by chance: {rows(shard, where)}",
        place(shard, names[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "share": share,
            "chance": chance,
            "p": p,
            "rows": tuple(int(i) for i in where[:20]),
            "kind": "reversed-pairs",
            "shard": short(shard),
        },
    )


def _mirrored(shard: Shard, train: list[Shard], names: tuple[str, ...], others: tuple[Array, Array], comparisons: int
              ) -> Iterator[Finding]:
    """Pairs that are dense, under a third field: the one that tells most of them from chance."""
    ends = _ends(shard, names)
    if len(names) != 2 or not len(ends[0]) or not all(_in_all(train, n) for n in names):
        return
    fields = thirds([shard, *train], names)
    found = [m for f in fields if (m := mirrored(shard, train, ends, others, f)) is not None]
    for one in sorted(found, key=lambda m: m.chance)[:1]:
        hits, proper = int(one.rows.sum()), int((ends[0] != ends[1]).sum())
        p = share_tail(hits, proper, min(1.0, 2.0 * one.chance + 1.0 / proper)) * comparisons * len(fields)
        if hits < SHARE * proper or hits < WITHIN * one.within * proper or p > LEVEL:
            continue
        yield RULE.finding(
            f"{hits:,} of {proper:,} rows of {short(shard)} ({percent(hits / proper)}) are rows of the training data "
            f"with {names[0]} and {names[1]} exchanged and the same {one.third} (mirrored pairs; {percent(one.chance)} "
            f"by chance, {percent(one.within)} within the training data), and {one.field} is the same in both (rank "
            f"correlation {one.same:.3f}): {rows(shard, np.flatnonzero(one.rows))}",
            place(shard, names[0]),
            shard.name,
            bearing=Bearing.CAUSE,
            measured={"share": hits / proper, "chance": one.chance, "p": p, "third": one.third, "same": one.same,
                      "rows": tuple(int(i) for i in np.flatnonzero(one.rows)[:20]), "kind": "reversed-pairs",
                      "shard": short(shard)},
        )


def _in_all(train: list[Shard], name: str) -> bool:
    return all(name in s.columns and len(_whole(s.columns[name])) == s.rows for s in train)
