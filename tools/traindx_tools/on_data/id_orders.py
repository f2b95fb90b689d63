"""Which other order of the ids makes one part agree with all others: alphabetical, by count, by a field of a table.

The k-th id of the part is taken for the k-th item in another order. Orders come from a table beside the data that gives
each id names or numbers, from lists of names with an index each, and from the counts in the other parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.id_meanings import Agreement, Ids, Quantity, agreement
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.places import short
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.table import DataSet

COVERS = 0.9
"""Share of the ids of the rows that a table lists."""
UNIQUE = 0.99
MOST_TABLE = 200_000
MOST_FIELDS = 12
BACK = 0.4
"""Of the agreement of the other parts, what an order must bring back: counts tell their order only roughly."""


@dataclass(frozen=True, eq=False)
class Order:
    """`meant[k]`: the id that the k-th of the sorted ids of the catalogue stands for in this order."""

    told: str
    ids: Array
    meant: Array


@dataclass(frozen=True)
class Restored:
    """An order under which a part agrees, and how far."""

    told: str
    after: float


def restored(ids: Ids, quantities: Sequence[Quantity], mine: Array, others: Array, orders: Sequence[Order],
             needed: float) -> Restored | None:
    """The order that brings most of the agreement back; `needed`: what the other parts have."""
    best: Restored | None = None
    tries = math.log(2.0 * max(1, len(orders)))
    for order in orders:
        moved = _moved(ids, order)
        if moved is None:
            continue
        found = [_after(ids, q, mine, others, moved) for q in quantities]
        after, worth = float(np.mean([f.r for f in found])), float(np.median([f.ids for f in found]))
        z = math.atanh(min(0.999, max(0.0, after))) * math.sqrt(max(0.0, worth - 3.0))
        sure = math.log(max(normal_tail(z), 1e-300)) + tries < math.log(LEVEL)
        if sure and after >= BACK * needed and (best is None or after > best.after):
            best = Restored(order.told, after)
    return best


def _moved(ids: Ids, order: Order) -> Array | None:
    """int64 shape (kinds,): the place of the id that each one stands for, -1 where that never occurs."""
    to = dict(zip(order.ids.tolist(), order.meant.tolist(), strict=True))
    place = {k: i for i, k in enumerate(ids.kinds.tolist())}
    out = np.array([place.get(to.get(k), -1) for k in ids.kinds.tolist()], np.int64)
    return out if (out >= 0).mean() >= 0.5 and (out != np.arange(len(out))).any() else None


def _after(ids: Ids, quantity: Quantity, mine: Array, others: Array, moved: Array) -> Agreement:
    mean, counts = ids.means(quantity, mine)
    seen = moved >= 0
    at, weight = np.zeros(len(mean)), np.zeros(len(mean))
    at[moved[seen]], weight[moved[seen]] = mean[seen], counts[seen]
    return agreement((at, weight), ids.means(quantity, others), quantity.values is None)


def orders_of(ids: Ids, sets: Sequence[DataSet], lists: Sequence[NameList], own: DataSet, others: Array
              ) -> Iterator[Order]:
    """The orders that are tried, those of tables that name the ids first."""
    if not ids.whole:
        return
    kinds = ids.kinds.astype(np.int64)
    for data in sets:
        if data is not own:
            yield from _of_table(data, kinds)
    for found in lists:
        numbers = np.arange(len(found.names)) + found.first
        if np.isin(kinds, numbers).mean() >= COVERS:
            yield from _alphabetical(numbers, found.names, f"in {found.file}")
    counts = np.bincount(ids.code[others], minlength=len(kinds))
    yield Order("by how often they occur in the other parts, the most frequent first", kinds,
                kinds[np.argsort(-counts, kind="stable")])
    yield Order("from the last to the first", kinds, kinds[::-1])
    for by in (1, -1):
        yield Order(f"counted {abs(by)} {'lower' if by > 0 else 'higher'}", kinds, kinds + by)


def _of_table(data: DataSet, kinds: Array) -> Iterator[Order]:
    """The orders of a table that has each id once: by each of its fields, and as its rows lie."""
    for shard in data.shards:
        if shard.rows > MOST_TABLE or shard.numbers is not None:
            continue
        for name, column in shard.columns.items():
            if column.kind != "number" or column.row_shape or column.values.dtype.kind not in "iu":
                continue
            listed = column.values.astype(np.int64)
            if len(np.unique(listed)) < UNIQUE * len(listed) or np.isin(kinds, listed).mean() < COVERS:
                continue
            where = f"in {short(shard)}"
            yield Order(f"as the rows lie {where}", np.sort(listed), listed)
            for other, beside in list(shard.columns.items())[:MOST_FIELDS]:
                if other == name or beside.rows != shard.rows or beside.row_shape:
                    continue
                if beside.kind == "text" and len(beside.texts) == shard.rows:
                    yield from _alphabetical(listed, beside.texts, f"by {other} {where}")
                elif beside.kind == "number" and beside.values.dtype.kind in "iuf":
                    values = np.asarray(beside.values, np.float64)
                    for down in (False, True):
                        order = np.argsort(-values if down else values, kind="stable")
                        yield Order(f"by {other} {where}, {'falling' if down else 'rising'}", np.sort(listed),
                                    listed[order])
            return


def _alphabetical(numbers: Array, names: Sequence[str], where: str) -> Iterator[Order]:
    for told, key in (("alphabetical", str), ("alphabetical, capitals as small letters", str.casefold)):
        order = sorted(range(len(names)), key=lambda i: key(names[i]))
        yield Order(f"{told} {where}", np.sort(numbers), numbers[order])
