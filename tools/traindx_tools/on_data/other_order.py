"""Two files of as many rows each that belong together row by row in another order than their own.

Vectors beside a table of what they are of, features beside a table of labels: which row goes with which is said by
their places alone. Where the columns of the table say nothing of the vectors in the order of the file, and much once
the table is sorted by one of its columns, the vectors were written in that order.

Both sides are compared without what changes slowly along the rows: any two columns that rise along the file go
together, and sorting makes every column rise that has to do with the one sorted by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import keys
from traindx_tools.on_data.row_vectors import vector_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, chi2_tail, independent_share
from traindx_tools.on_data.view import View

FEWEST, MOST_ROWS = 100, 200_000
"""Rows of both files."""
NARROWEST = 3
"""Numbers in a row of vectors."""
WIDEST = 256
"""Of which at most are looked at; a wider row is projected."""
DIRECTIONS = 8
"""Of the vectors, by their spread, that are compared."""
MOST_PAIRS, MOST_COLUMNS = 12, 12
DISTINCT = 0.5
"""Of the rows, that a column's values must tell apart to sort by it."""
SHARE, LEFT = 0.1, 0.25
"""What the other order explains of the vectors' directions, at least; and the share of it that the own order may."""
MOST_KINDS, FEWEST_OF_KIND = 128, 5
"""Classes of a column, and rows of each."""
HOW = ("rising", "falling", "text", "numbers")
"""How rows are sorted by a column: numbers up or down, as text (1, 10, 2), texts by the numbers in them (1, 2, 10)."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, eq=False)
class Reordered:
    """One pair of files. `by`: the column of the table to sort by, `how`: one of HOW; `tells`: the column that
    then goes along with the vectors, with what it explains `after` and `before`; `apart`: rows that lie elsewhere
    then."""

    table: Shard
    vectors: Shard
    field: str
    by: str
    how: str
    tells: str
    after: float
    before: float
    apart: int


def reordered(view: View) -> Iterator[Reordered]:
    """At most one for each pair of a table and vectors."""
    shards = [s for d in view.sets for s in d.shards if s.rows == s.total and FEWEST <= s.rows <= MOST_ROWS]
    pairs = 0
    for vectors in shards:
        for field, column in vectors.columns.items():
            if not _is_vectors(column, vectors.rows):
                continue
            for table in shards:
                if table is vectors or table.rows != vectors.rows or len(table.columns) < 2 or any(
                        _is_vectors(c, table.rows) for c in table.columns.values()):
                    continue
                pairs += 1
                if pairs > MOST_PAIRS:
                    return
                found = _compared(table, vectors, field)
                if found is not None:
                    yield found


def _is_vectors(column: Column, rows: int) -> bool:
    return (column.is_float and column.rows == rows and len(column.row_shape) == 1
            and column.row_shape[0] >= NARROWEST and column.missing is None)


def _compared(table: Shard, vectors: Shard, field: str) -> Reordered | None:
    said = {n: v for n, c in list(table.columns.items())[:MOST_COLUMNS]
            if not c.row_shape and (v := _said(c, table.rows)) is not None}
    orders = dict(_orders(table))
    looks = _directions(vectors.columns[field])
    counted = _independent(looks) if looks is not None else 0.0
    if not said or not orders or looks is None:
        return None
    tests = len(said) * (len(orders) + 1)
    own = {n: _explained(looks, v, counted) for n, v in said.items()}
    best: tuple[float, str, tuple[str, str]] | None = None
    for order, places in orders.items():
        for name, values in said.items():
            if name == order[0]:  # sorted, it says where a row lies and nothing else
                continue
            share, chance = _explained(looks, values[places], counted)
            if chance * tests * MOST_PAIRS < LEVEL and share >= SHARE and (best is None or share > best[0]):
                best = share, name, order
    if best is None or max(share for share, _ in own.values()) > LEFT * best[0] or any(
            chance * tests < LEVEL for _, chance in own.values()):
        return None
    share, name, (by, how) = best
    places = orders[by, how]
    return Reordered(table, vectors, field, by, how, name, share, own[name][0],
                     int((places != np.arange(len(places))).sum()))


def _said(column: Column, rows: int) -> Array | None:
    """What a column says of each row: numbers, and classes of which each has enough rows as one-hot codes."""
    if column.rows == rows and column.missing is None and (
            column.digests is not None if column.kind == "text" else column.is_integer):
        kinds, codes, counts = np.unique(keys(column), return_inverse=True, return_counts=True)
        if 2 < len(kinds) <= MOST_KINDS and np.median(counts) >= FEWEST_OF_KIND:
            return np.eye(len(kinds), dtype=np.float32)[codes.reshape(-1)]
    values = vector_of(column, rows)
    return _ranked(values) if values is not None and values.shape[1] == 1 else values


def _ranked(values: Array) -> Array:
    """Each column by its ranks, from -1 to 1: a few values that are far beyond the others are few. Equal values get
    ranks in no order."""
    chance = np.random.default_rng(0).random(len(values))
    ranks = np.empty(values.shape)
    for j in range(values.shape[1]):
        ranks[np.lexsort((chance, values[:, j])), j] = np.linspace(-1, 1, len(values))
    return ranks


def _orders(table: Shard) -> Iterator[tuple[tuple[str, str], Array]]:
    """The places of the rows after sorting by a column, where that changes something."""
    own = np.arange(table.rows)
    for name, column in list(table.columns.items())[:MOST_COLUMNS]:
        for how, places in ways_to_sort(column, table.rows).items():
            if (places != own).any():
                yield (name, how), places


def ways_to_sort(column: Column, rows: int) -> Mapping[str, Array]:
    """By how (one of HOW): int64 (rows,), the place now of each row then. Nothing of a column that tells too few apart.
    """
    if column.row_shape or column.missing is not None or column.rows != rows:
        return {}
    if column.kind == "text":
        texts = column.texts
        if len(texts) != rows or len(set(texts)) < DISTINCT * rows:
            return {}
        return {"text": np.array(sorted(range(rows), key=lambda i: texts[i])),
                "numbers": np.array(sorted(range(rows), key=lambda i: _natural(texts[i])))}
    if column.kind != "number" or column.values.dtype.kind not in "iuf" or not np.isfinite(column.values).all():
        return {}
    if len(np.unique(column.values)) < DISTINCT * rows:
        return {}
    numbers = [str(int(v)) if column.is_integer else str(v) for v in column.values.tolist()]
    return {"rising": np.argsort(column.values, kind="stable"),
            "falling": np.argsort(-column.values.astype(np.float64), kind="stable"),
            "text": np.array(sorted(range(rows), key=lambda i: numbers[i]))}


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """`clip_2` before `clip_10`."""
    parts: list[tuple[int, str]] = []
    end = 0
    for found in _NUMBER.finditer(text[:200]):
        parts += [(-1, text[end:found.start()]), (int(found[0]), "")]
        end = found.end()
    return (*parts, (-1, text[end:]))


def _directions(column: Column) -> Array | None:
    """float64 (rows, directions): the directions of most spread, of one size, uncorrelated, without slow changes."""
    flat = np.asarray(column.values, np.float64).reshape(len(column.values), -1)
    if not np.isfinite(flat).all():
        return None
    spread = flat.std(axis=0)
    flat = (flat - flat.mean(axis=0))[:, spread > 0]
    if flat.shape[1] < NARROWEST:
        return None
    flat /= flat.std(axis=0)
    if flat.shape[1] > WIDEST:
        flat = flat @ np.random.default_rng(0).normal(size=(flat.shape[1], WIDEST))
    fast = _without_slow(_ranked(flat))
    values, axes = np.linalg.eigh(fast.T @ fast / len(fast))
    kept = values > 1e-9 * max(float(values[-1]), 1e-30)
    taken = fast @ axes[:, kept][:, -DIRECTIONS:] / np.sqrt(values[kept][-DIRECTIONS:])
    out: Array = np.clip(taken, -6, 6)
    return out


def _without_slow(values: Array) -> Array:
    """Each column less its mean over the rows around each row."""
    reach = max(3, math.isqrt(len(values)) // 2)
    padded = np.pad(values, ((reach + 1, reach), (0, 0)), mode="reflect")
    sums = np.cumsum(padded, axis=0)
    around = (sums[2 * reach + 1:] - sums[:-2 * reach - 1]) / (2 * reach + 1)
    fast: Array = values - around
    fast -= fast.mean(axis=0)
    return fast


def _independent(looks: Array) -> float:
    """Of the rows, how many independent ones they count for: those of a walk tell less than as many of a list."""
    return min(independent_share(looks[:, j]) for j in range(looks.shape[1]))


def _explained(looks: Array, values: Array, counted: float) -> tuple[float, float]:
    """What a column tells of the directions (the mean of squared multiple correlations), and its chance."""
    fast = _without_slow(np.asarray(values, np.float64))
    spread, axes = np.linalg.eigh(fast.T @ fast / len(fast))
    kept = spread > 1e-6 * max(float(spread[-1]), 1e-30)
    if not kept.any() or spread[-1] < 1e-12:
        return 0.0, 1.0
    own = fast @ axes[:, kept] / np.sqrt(spread[kept])
    sizes = looks.std(axis=0)
    meet = (own.T @ looks / len(looks)) / np.where(sizes > 0, sizes, 1.0)
    total = float((meet**2).sum())
    freedom, rows = meet.size, counted * len(looks)
    share = max(0.0, total - freedom / rows) / min(meet.shape)
    return share, chi2_tail(rows * total, freedom)


