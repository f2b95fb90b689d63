"""Held-out pairs (u, v) are in training as (v, u).

Where a relation has no direction, such a pair is the same fact. How often a pair is there both ways by chance follows
from the number of pairs and of ids; how often it is so within the training data tells whether the relation has a
direction: of a directed relation that is sometimes returned nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.table import Array, DataSet, Shard, View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.3
FEWEST = 20

RULE = Rule(
    id="D116",
    name="reversed-pairs",
    title="Held-out pairs are in the training data the other way round",
    severity=Severity.HIGH,
    sees="two fields of ids, or one field of pairs, across splits",
    matters="The model is asked what it was told.",
    alike=("A directed relation that is sometimes returned: follows, replies, citations.",),
    confirm=("Print the named rows and their reverse.", "Split by unordered pair."),
    thresholds={
        "share": Threshold(SHARE, "of held-out pairs", "relations with a direction are returned less often"),
        "level": Threshold(LEVEL, "probability", "by chance, from the density of pairs, over all shards"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard."""
    for data in view.sets:
        train = [s for s in data.splits.get("train", ()) if s.columns]
        for names in _pair_fields(data, train):
            left, right = (np.concatenate([_ends(s, names)[k] for s in train]) for k in (0, 1))
            for shard in (
                s for s in data.shards if s.split not in ("", "train") and all(n in s.columns for n in names)
            ):
                yield from _reversed(shard, names, left, right, view.comparisons)


def _pair_fields(data: DataSet, train: list[Shard]) -> Iterator[tuple[str, ...]]:
    """Fields that hold ids of one kind.

    An integer array of two columns, or two integer fields that share their values.
    """
    if not train:
        return
    first = train[0]
    whole = [n for n, c in first.columns.items() if c.kind == "number" and c.values.dtype.kind in "iu"]
    for name in whole:
        if first.columns[name].row_shape == (2,):
            yield (name,)
    scalars = [n for n in whole if not first.columns[n].row_shape and first.summaries[n].distinct_rows >= 10]
    for i, a in enumerate(scalars[:8]):
        for b in scalars[i + 1 : 8]:
            x, y = distinct(first.columns[a].values), distinct(first.columns[b].values)
            if len(np.intersect1d(x, y)) >= 0.5 * min(len(x), len(y)) and len(x) < 0.9 * first.rows:
                yield (a, b)


def _ends(shard: Shard, names: tuple[str, ...]) -> tuple[Array, Array]:
    if any(n not in shard.columns for n in names):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if len(names) == 1:
        pairs = np.asarray(shard.columns[names[0]].values, np.int64)
        return pairs[:, 0], pairs[:, 1]
    return tuple(np.asarray(shard.columns[n].values, np.int64) for n in names)  # type: ignore[return-value]


def _reversed(shard: Shard, names: tuple[str, ...], left: Array, right: Array, comparisons: int) -> Iterator[Finding]:
    u, v = _ends(shard, names)
    proper = u != v
    base = int(max(left.max(initial=0), right.max(initial=0), u.max(initial=0), v.max(initial=0))) + 1
    low = int(min(left.min(initial=0), right.min(initial=0), u.min(initial=0), v.min(initial=0)))
    if low < 0 or base > 2**31 or proper.sum() < FEWEST:
        return
    forward = distinct(left * base + right)
    hits = proper & np.isin(v * base + u, forward)
    share = float(hits.sum() / proper.sum())
    nodes = len(distinct(np.concatenate([left, right])))
    chance = min(1.0, len(forward) / max(1, nodes * nodes))
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
