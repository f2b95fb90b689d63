"""Tables whose rows name rows of another table by number (edges of a graph, an index), and what those have in common.

Neighbours of a graph are more alike than any two nodes; what an index says of an item goes along with its features.
Where that is so only after the numbers are moved by one, they are counted from another number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_id_name, is_row_id, keys
from traindx_tools.on_data.row_vectors import MOST_WIDTH, vector_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.tasks import solved
from traindx_tools.on_data.view import View

FEWEST = 60
"""Rows of each table."""
REACH = 0.8
"""Of the numbers of the rows, up to which links must reach."""
MOST_LINKS = 6000
"""Rows of a part that are looked at."""
MOST_COLUMNS = 4
MOST_TABLES, MOST_NAMED = 40, 8
"""Tables that are looked at, and those of them that may be named by others."""
MOST_ROWS = 200_000
"""Rows of a table that is named, and of one that names: of more of the latter, every second or third."""
KINDS = 20


@dataclass(frozen=True, eq=False)
class Rows:
    """The table that is named: what is known of its rows."""

    shard: Shard
    ids: Array
    """int64 shape (rows,): their numbers, from 0 on where no field tells them."""
    by: str
    """The field of the numbers, "" where they are the places of the rows."""
    vectors: tuple[Array, ...]
    """float32 shape (rows, features) each, about 0: features, and classes as one-hot codes."""


@dataclass(frozen=True, eq=False)
class Links:
    """Shards with the same fields, of which one or two name rows."""

    group: tuple[Shard, ...]
    fields: tuple[str, ...]
    to: Rows
    step: int = 1
    """How many rows of the table stand for each that is kept here."""


def links_of(view: View) -> Iterator[Links]:
    """The tables that may name rows of another one, by their numbers alone."""
    tables = list(itertools.islice(_tables(view), MOST_TABLES))
    single = [group[0] for group in tables if len(group) == 1 and group[0].rows <= MOST_ROWS]
    named = list(itertools.islice((r for s in single if (r := _rows(s)) is not None), MOST_NAMED))
    for whole in tables:
        step = -(-sum(s.rows for s in whole) // MOST_ROWS)
        group = whole if step == 1 else tuple(_thinned(s, step) for s in whole)
        fields = [n for n, c in group[0].columns.items() if all(n in s.columns and _is_number(s.columns[n])
                                                                 for s in group)]
        for to in named:
            if any(s is to.shard for s in whole):
                continue
            own = [n for n in fields if _names(np.concatenate([s.columns[n].values for s in group]), to)]
            if own:
                yield Links(group, tuple(own[:2]), to, step)


def _thinned(shard: Shard, step: int) -> Shard:
    """Every `step`-th row of the fields of one number or text a row."""
    columns = {n: replace(c, values=c.values[::step], texts=c.texts[::step],
                          digests=None if c.digests is None else c.digests[::step],
                          missing=None if c.missing is None else c.missing[::step])
               for n, c in shard.columns.items() if c.kind in ("number", "text") and not c.row_shape}
    return replace(shard, columns=columns, rows=-(-shard.rows // step), row_names=())


def _tables(view: View) -> Iterator[tuple[Shard, ...]]:
    """The sets, and arrays of another length in their files, a table for each length."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows >= FEWEST and s.numbers is None)
        if group:
            yield tuple(_with_pairs(s) for s in group)
        for shard in group:
            by_length: dict[int, dict[str, Column]] = {}
            for name, values in shard.beside.items():
                for called, part in _of_array(name, values):
                    by_length.setdefault(len(part), {})[called] = Column(called, "number", part, shard.name)
            yield from ((replace(shard, columns=columns, rows=rows, total=rows, beside={}, row_names=()),)
                        for rows, columns in by_length.items() if rows >= FEWEST)


def _with_pairs(shard: Shard) -> Shard:
    """The shard with two fields for each array of pairs."""
    pairs = {n: c for n, c in shard.columns.items() if c.kind == "number" and c.row_shape == (2,) and c.is_integer}
    if not pairs:
        return shard
    kept = {n: c for n, c in shard.columns.items() if n not in pairs}
    made = {called: Column(called, "number", part, c.file) for n, c in pairs.items()
            for called, part in _of_array(n, c.values)}
    return replace(shard, columns={**kept, **made})


def _of_array(name: str, values: Array) -> Iterator[tuple[str, Array]]:
    """An array of pairs as two fields, whichever way it lies."""
    if values.ndim == 2 and 2 in values.shape and values.dtype.kind in "iu":
        pairs = values.T if values.shape[1] == 2 else values
        yield from ((f"{name}[{k}]", pairs[k]) for k in (0, 1))
    else:
        yield name, values


def _is_number(column: Column) -> bool:
    return column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iu" and (
        column.missing is None) and not is_row_id(column)


def _names(values: Array, to: Rows) -> bool:
    """Whether whole numbers may be those of rows: all of them but for one, and nearly up to the last."""
    low, high = int(to.ids.min()), int(to.ids.max())
    return bool(len(values) >= FEWEST and low - 1 <= values.min() and low + REACH * (high - low) <= values.max()
                and values.max() <= high + 1 and len(np.unique(values)) >= min(FEWEST, 0.3 * len(to.ids)))


def _rows(shard: Shard) -> Rows | None:
    number = next((c for n, c in shard.columns.items() if is_row_id(c) and is_id_name(n)
                   and int(c.values.max()) - int(c.values.min()) < 1.05 * shard.rows), None)
    number = number or next((c for c in shard.columns.values() if _counts_rows(c, shard.rows)), None)
    vectors = [v for n, c in shard.columns.items() if c is not number and (v := vector_of(c, shard.rows)) is not None]
    if not vectors:
        return None
    narrow = [v for v in vectors if v.shape[1] == 1]
    wide = [v for v in vectors if v.shape[1] > 1]
    joined = tuple(wide[:MOST_COLUMNS]) + ((np.concatenate(narrow, axis=1)[:, :MOST_WIDTH],) if narrow else ())
    ids = np.arange(shard.rows) if number is None else np.asarray(number.values, np.int64)
    return Rows(shard, ids, "" if number is None else number.name, joined)


def _counts_rows(column: Column, rows: int) -> bool:
    """Whether a field is one more in each row: it tells the rows' numbers, and nothing of what they are."""
    return (column.kind == "number" and column.values.dtype.kind in "iu" and column.values.shape == (rows,)
            and bool((np.diff(column.values.astype(np.int64)) == 1).all()))


def sureness(gain: Array, named: Array) -> float:
    """Mean gain in its standard deviations, where links that name one row are one observation (clusters of rows)."""
    _, at = np.unique(named, return_inverse=True)
    around = np.bincount(at, weights=gain - gain.mean())
    clusters = len(around)
    spread = math.sqrt(float((around**2).sum()) * clusters / max(1, clusters - 1)) / len(gain)
    return float(gain.mean()) / max(1e-9, spread)


def alike(links: Links, some: Sequence[Array], by: int) -> list[Array]:
    """For each kind of vector, how much each named pair of rows is alike after numbers are moved; NaN: no such row.

    `some`: the numbers in both fields, int64 shape (links,) each.
    """
    at = [_found(links.to, v + by) for v in some]
    known = (at[0] >= 0) & (at[1] >= 0)
    out = []
    for x in links.to.vectors:
        norm = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
        score = (norm[at[0]] * norm[at[1]]).sum(axis=1)
        out.append(np.where(known, score, np.nan))
    return out


def told(links: Links, number: Array, beside: Array, by: int) -> Array:
    """Whether a ridge regression on the features of the named rows tells each link's class, on folds left out."""
    at = _found(links.to, number + by)
    x = np.concatenate([*links.to.vectors, np.ones((len(links.to.ids), 1), np.float32)], axis=1)[at]
    fold, out = np.arange(len(at)) % 5, np.zeros(len(at))
    hot = np.eye(int(beside.max()) + 1, dtype=np.float32)[beside]
    for k in range(5):
        own, rest = fold == k, (fold != k) & (at >= 0)
        weights = solved((x[rest].T @ x[rest]).astype(np.float64), (x[rest].T @ hot[rest]).astype(np.float64))
        out[own] = (x[own] @ weights).argmax(axis=1) == beside[own]
    return np.where(at >= 0, out, np.nan)


def _found(to: Rows, numbers: Array) -> Array:
    """The place of each number among the rows, -1 for none."""
    if not to.by:
        return np.where((numbers >= 0) & (numbers < len(to.ids)), numbers, -1)
    order = np.argsort(to.ids, kind="stable")
    at = np.minimum(np.searchsorted(to.ids[order], numbers), len(order) - 1)
    return np.where(to.ids[order][at] == numbers, order[at], -1)


def classes_beside(links: Links) -> Iterator[tuple[str, Array]]:
    """Other fields of the links as few classes, int64 shape (links,): labels as they are, numbers as two halves."""
    group = links.group
    names = [n for n in group[0].columns if n not in links.fields and all(n in s.columns for s in group)]
    made = 0
    for name in names:
        columns = [s.columns[name] for s in group]
        if any(c.row_shape or c.missing is not None or c.kind == "sequence" or is_row_id(c)
               or (c.kind == "text" and c.digests is None) for c in columns) or made == MOST_COLUMNS:
            continue
        values = np.concatenate([keys(c) for c in columns])
        if values.dtype.kind == "f":
            values = values > np.nanmedian(values)
        kinds, y = np.unique(values, return_inverse=True)
        if 2 <= len(kinds) <= KINDS:
            made += 1
            yield name, y.reshape(-1)
