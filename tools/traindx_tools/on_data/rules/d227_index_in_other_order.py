"""A table gives each key the number of a row, and the rows stand in another order: sorted as text, reversed, moved.

Numbers that were dealt out over keys in the order of their text (10, 100, 11) and rows that were written in the order
of numbers hold the same keys, so that every look-up succeeds. That the numbers are meant for rows at all is seen by
what uses the keys: pairs of keys (edges, ratings of two things) join rows that are alike by the keys themselves, and
strangers by the numbers of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.links import sureness
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.roles import keys
from traindx_tools.on_data.row_vectors import vectors_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST, MOST, MOST_LINKS, SAME, GAIN, LEFT = 60, 200_000, 20_000, 0.995, 0.05, 1 / 3

RULE = Rule(
    id="D227",
    name="index-in-other-order",
    title="The numbers that keys have in a table are not the places of their rows",
    severity=Severity.HIGH,
    sees="a table of keys with a number each, a file whose rows have the same keys, and pairs of keys: how much the "
         "rows are alike that a pair joins, by their keys and by the numbers",
    matters="Every look-up by number finds the row of another key: neighbours, features and labels are strangers'.",
    alike=("Numbers that are no places of rows (of an embedding): the pairs say nothing by either.",
           "Pairs that join rows which are not alike: neither way fits, and nothing is said."),
    confirm=("Look up three keys by their number, and print the key that stands in that row.",
             "Number the keys in the order of the rows in a copy, and compare."),
    thresholds={
        "fewest": Threshold(FEWEST, "keys, and pairs", ""),
        "gain": Threshold(GAIN, "mean similarity", "that the places of the keys win over the numbers, at least"),
        "left": Threshold(LEFT, "of what they have above chance", "that the numbers may have, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all pairs of tables"),
    },
)


@dataclass(frozen=True, eq=False)
class _Index:
    """A table of keys, each with a number: a permutation from `first` on."""

    shard: Shard
    key: str
    field: str
    keys: Array
    numbers: Array


def check(view: View) -> Iterator[Finding]:
    """One finding for each table of numbers."""
    tables = [s for d in view.sets for s in d.shards if s.columns and s.numbers is None and FEWEST <= s.rows <= MOST]
    for index in (i for s in tables for i in _indexes(s)):
        for shard in (s for s in tables if s is not index.shard):
            found = next((f for c in shard.columns.values() if (f := _beside(view, tables, index, shard, c))), None)
            if found is not None:
                yield found
                break


def _indexes(shard: Shard) -> Iterator[_Index]:
    """Every pair of a unique key and a permutation."""
    columns = [c for c in shard.columns.values() if _is_key(c, shard)]
    for one in columns:
        values = np.asarray(one.values)
        if one.kind != "number" or values.dtype.kind not in "iu" or values.max() - values.min() != shard.rows - 1:
            continue
        for key in (c for c in columns if c is not one):
            yield _Index(shard, key.name, one.name, keys(key), (values - values.min()).astype(np.int64))


def _is_key(column: Column, shard: Shard) -> bool:
    if column.rows != shard.rows or column.row_shape or column.missing is not None or column.kind == "sequence" or (
            column.kind == "text" and column.digests is None) or column.is_float:
        return False
    return len(np.unique(keys(column))) == shard.rows


def _beside(view: View, tables: list[Shard], index: _Index, shard: Shard, column: Column) -> Finding | None:
    """A file with the same keys in another order than the numbers, and pairs that tell which is meant."""
    if shard.rows != index.shard.rows or not _is_key(column, shard):
        return None
    own = keys(column)
    order = np.argsort(own, kind="stable")
    if own.dtype.kind != index.keys.dtype.kind and "f" in (own.dtype.kind, index.keys.dtype.kind):
        return None
    at = np.minimum(np.searchsorted(own[order], index.keys), len(own) - 1)
    if not np.array_equal(own[order][at], index.keys):
        return None
    places = order[at]
    if float((places == index.numbers).mean()) >= SAME or np.ptp(places - index.numbers) == 0:
        return None
    vectors = vectors_of(shard, (column.name,))
    for links in (s for s in tables if s is not shard and s is not index.shard) if vectors else ():
        ends = [c for c in links.columns.values() if _names(c, links, index.keys)][:2]
        if len(ends) == 2:
            found = _told(index, places, vectors, [keys(c) for c in ends], view.comparisons)
            if found is not None:
                return _finding(index, shard, column, links, [c.name for c in ends], places, found)
    return None


def _names(column: Column, shard: Shard, known: Array) -> bool:
    if column.rows != shard.rows or column.row_shape or column.kind == "sequence" or column.missing is not None or (
            column.kind == "text" and column.digests is None) or column.is_float:
        return False
    values = keys(column)
    return values.dtype.kind == known.dtype.kind and float(np.isin(values[:2000], known).mean()) > SAME


def _told(index: _Index, places: Array, vectors: Mapping[str, Array], ends: list[Array], comparisons: int
          ) -> tuple[str, float, float] | None:
    """How alike the rows are that a pair joins: by their keys, and by the numbers; above what chance pairs are."""
    step = max(1, len(ends[0]) // MOST_LINKS)
    order = np.argsort(index.keys, kind="stable")
    rows = []
    for values in (e[::step] for e in ends):
        at = order[np.minimum(np.searchsorted(index.keys[order], values), len(order) - 1)]
        rows.append(at[:MOST_LINKS])
    good = np.logical_and.reduce([index.keys[r] == e[::step][:MOST_LINKS] for r, e in zip(rows, ends, strict=True)])
    mix = np.random.default_rng(0).permutation(int(good.sum()))
    for name, x in vectors.items():
        norm = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)

        def score(to: Array, other: Array | None = None, norm: Array = norm) -> Array:
            one, two = to[rows[0][good]], to[rows[1][good]]
            return np.asarray((norm[one] * norm[two if other is None else two[other]]).sum(axis=1))

        chance = float(score(places, mix).mean())
        by_key, by_number = score(places), score(index.numbers)
        above, left = float(by_key.mean()) - chance, float(by_number.mean()) - chance
        z = sureness(by_key - by_number, rows[0][good])
        if len(by_key) >= FEWEST and above >= GAIN and left <= LEFT * above and (
                math.log(max(normal_tail(z / 1.5), 1e-300)) + math.log(comparisons) < math.log(LEVEL)):
            return name, above, left
    return None


def _order(index: _Index, column: Column, places: Array) -> str:
    """In which order the keys were numbered, in words; "" where it is none that is known."""
    by_place = np.empty(len(places), np.int64)
    by_place[places] = index.numbers  # the number of each row
    ways = {"in the reverse order of the rows": np.arange(len(places))[::-1]}
    if column.kind == "number":
        values = np.asarray(column.values).astype(np.int64)
        by_text, by_size = np.argsort(values.astype(str), kind="stable"), np.argsort(values, kind="stable")
    else:
        texts = np.array(column.texts) if len(column.texts) == len(places) else None
        if texts is None:
            return ""
        by_text = np.argsort(texts, kind="stable")
        by_size = np.array(sorted(range(len(texts)), key=lambda i: (len(texts[i]), texts[i])))
    for said, order in (("in the order of their text (10, 100, 11, ...)", by_text),
                        ("in the order of their size", by_size)):
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        ways[said] = rank
    return next((said for said, rank in ways.items() if float((rank == by_place).mean()) >= SAME), "")


def _finding(index: _Index, shard: Shard, column: Column, links: Shard, ends: list[str], places: Array,
             found: tuple[str, float, float]) -> Finding:
    name, above, left = found
    said = _order(index, column, places)
    off = np.flatnonzero(places != index.numbers)
    row = int(off[0])
    key = index.shard.columns[index.key]
    called = repr(key.texts[row]) if key.kind == "text" and len(key.texts) > row else str(np.asarray(key.values)[row])
    return RULE.finding(
        f"{index.field} of {short(index.shard)} numbers the {len(places):,} values of {index.key} "
        f"{said or 'in another order than the rows'}, and the rows of {short(shard)} stand in another order "
        f"({column.name}): {called} has number {int(index.numbers[row])} and stands in row {int(places[row])}, and "
        f"{len(off):,} in all do not stand where their number says. Pairs of {ends[0]} and {ends[1]} of "
        f"{short(links)} join rows that are alike in {name} ({number(above)} above chance) by their keys, and hardly "
        f"({number(left)}) by the numbers",
        place(index.shard, index.field),
        index.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": index.field, "fields": (index.field, index.key), "keys": len(places), "moved": len(off),
                  "order": said, "above": round(above, 4), "left": round(left, 4), "to": short(shard),
                  "kind": "order", "shard": short(index.shard)},
    )
