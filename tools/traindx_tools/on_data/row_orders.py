"""Orders in which rows are written by mistake: sorted by a column, by numbers as text, reversed, or by a usual seed.

Numbers sorted as text are 1, 10, 100, 2: so do listings of files, keys of JSON and joins on text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard

LENGTHS = 12
"""Different lengths of texts, from which on they can be sorted by."""
MOST_KEYS = 6
MOST_ROWS = 4000
SEEDS = (0, 1, 42)
FEWEST = 20


def orders_of(group: Sequence[Shard]) -> list[tuple[str, list[Array]]]:
    """What rows can be in the order of, and by shard float64 shape (rows,): values that are sorted then."""
    columns = [(n, [s.columns[n] for s in group]) for n, c in group[0].columns.items()
               if all(n in s.columns and _suits(s.columns[n], c.kind, s.rows) for s in group)]
    by_value = [found for name, of in columns for found in _by_value(name, of)][:MOST_KEYS]
    as_text = [found for name, of in columns if (found := _as_text(name, of)) is not None][:MOST_KEYS]
    made = [dict(number_orders(s.rows)) for s in group]
    return [*by_value, *as_text, *((told, [m[told] for m in made]) for told in made[0])]


def _suits(column: Column, kind: str, rows: int) -> bool:
    return column.kind == kind and kind in ("number", "text") and column.rows == rows and not column.row_shape


def _by_value(name: str, columns: Sequence[Column]) -> Iterator[tuple[str, list[Array]]]:
    """Numbers that differ and are in no order yet, and lengths of texts."""
    values = [np.asarray(c.values, np.float64) for c in columns]
    some = values[0][:MOST_ROWS]
    if columns[0].kind == "text" and len(np.unique(some)) >= LENGTHS:
        yield f"the length of {name}", values
        yield f"the length of {name}, the longest first", [-v for v in values]
    elif columns[0].kind == "number" and len(np.unique(some)) > 0.9 * len(some) and bool((np.diff(some) < 0).any()):
        yield name, values


def _as_text(name: str, columns: Sequence[Column]) -> tuple[str, list[Array]] | None:
    """Whole numbers as texts, and texts: all different, where that is another order than the one they are in."""
    told, ranks = f"{name} as text", []
    for column in columns:
        if column.missing is not None:
            return None
        if column.kind == "text":
            texts, told = list(column.texts), name
        elif column.values.dtype.kind in "iu":
            texts = [str(v) for v in column.values.tolist()]
        else:
            return None
        if len(texts) != column.rows or len(set(texts)) < 0.99 * max(FEWEST, len(texts)):
            return None
        ranks.append(_ranks(texts))
    return (told, ranks) if any((np.diff(r) < 0).any() for r in ranks) else None


def _ranks(texts: Sequence[str]) -> Array:
    """float64 shape (texts,): the place of each text once they are sorted."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    return _inverse(np.array(order, np.int64)).astype(np.float64)


def _inverse(order: Array) -> Array:
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order))
    return out


def number_orders(rows: int) -> Iterator[tuple[str, Array]]:
    """Orders that the numbers of the rows alone tell, as values that are sorted then."""
    yield "the rows reversed", -np.arange(rows, dtype=np.float64)
    yield "the numbers of the rows from 0 on as text", _ranks([str(i) for i in range(rows)])
    yield "the numbers of the rows from 1 on as text", _ranks([str(i + 1) for i in range(rows)])
    for seed in SEEDS:
        yield f"numpy.random.default_rng({seed}).permutation", _inverse(np.random.default_rng(seed).permutation(rows))
        yield (f"numpy.random.seed({seed}) and a permutation",
               _inverse(np.random.RandomState(seed).permutation(rows)))
        shuffled = list(range(rows))
        random.Random(seed).shuffle(shuffled)
        yield f"random.seed({seed}) and a shuffle", _inverse(np.array(shuffled))
