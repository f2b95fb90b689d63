"""A table is made of another one by a factor for each row and one for each column, and the columns' stand elsewhere.

Counts of words and their tf-idf, reads of genes and their normalised values: where both tables are there, the quotient
of their cells is a factor of the row times one of the column, to rounding. What the columns' factors should be the
first table says by itself: the logarithm of the rows over the rows that have the column, in all its spellings; one over
the mean, the spread, the sum or the largest value. Factors that are these numbers in another order were made with
another vocabulary, or sorted in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import number, percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST, COLUMNS, MOST_CELLS, MOST_TABLES = 40, 12, 2**24, 12
EXACT, HOLDS, SAME, MOVED = 2e-3, 0.98, 5e-3, 0.5
ROUNDS = 3

RULE = Rule(
    id="D229",
    name="column-factors",
    title="The factors by which a table was made of another one stand at other columns",
    severity=Severity.HIGH,
    sees="pairs of tables of one shape whose quotient is a factor of the row times one of the column; these beside "
         "what the first table says: idf in its spellings, one over mean, spread, sum and largest value",
    matters="Rare words count as common ones and the other way round: features are scaled by the factors of others.",
    alike=("Factors of another formula, or of other rows: no order of the computed ones fits, and nothing is said.",
           "Columns that are sorted in both tables: their factors are in order."),
    confirm=("Compute the factor of three named columns from the first table, and compare.",
             "Make the second table anew from the first one, and train on it."),
    thresholds={
        "exact": Threshold(EXACT, "of a cell", "that the product of both factors leaves"),
        "holds": Threshold(HOLDS, "of the cells", "of which that is so, and in which both tables are zero or not"),
        "same": Threshold(SAME, "of a factor", "within which sorted factors are those that were computed"),
        "moved": Threshold(MOVED, "of the columns", "that must have the factor of another one"),
    },
)


@dataclass(frozen=True, eq=False)
class _Table:
    shard: Shard
    column: Column
    values: Array


def check(view: View) -> Iterator[Finding]:
    """One finding for each table that was made of another one."""
    tables = [_Table(s, c, np.asarray(c.values)) for d in view.sets for s in d.shards if s.numbers is None
              for c in s.columns.values() if _is_table(c, s)][:MOST_TABLES]
    for made in (t for t in tables if t.column.is_float):
        for source in tables:
            if source is not made and source.values.shape == made.values.shape:
                found = _of(source.values, made.values)
                if found is not None:
                    yield _finding(source, made, *found)
                    break


def _is_table(column: Column, shard: Shard) -> bool:
    return (column.kind == "number" and column.rows == shard.rows >= FEWEST and len(column.row_shape) == 1
            and column.row_shape[0] >= COLUMNS and column.values.dtype.kind in "iuf"
            and column.values.size <= MOST_CELLS)


def _of(source: Array, made: Array) -> tuple[str, Array, Array] | None:
    """The name of the computed factors, the order that they stand in, and how far they are off as they are."""
    factors = _factors(source, made)
    if factors is None:
        return None
    known = np.isfinite(factors)
    kept = np.flatnonzero(known)
    own = np.log(np.abs(factors[kept]))
    if len(kept) < COLUMNS or np.ptp(own) < 0.1:
        return None
    found = []
    for name, computed in _computed(np.asarray(source, np.float64)):
        with np.errstate(all="ignore"):
            said = np.log(computed[kept])
        if not np.isfinite(said).all():
            continue
        shift = float(np.median(np.sort(own) - np.sort(said)))
        off = np.abs(own - said - shift)
        if float(np.quantile(off, 0.9)) < SAME:
            return None  # this is how it was made
        if float(np.abs(np.sort(own) - np.sort(said) - shift).max()) < SAME and float((off > SAME).mean()) >= MOVED:
            found.append((name, off))
    if not found:
        return None
    name, off = found[0]
    return name, kept, off


def _factors(source: Array, made: Array) -> Array | None:
    """The factor of each column, NaN where no cell tells it; None where the quotient is no product of two factors."""
    step = max(1, source.size // 2**21)
    a, b = np.asarray(source[::step], np.float64), np.asarray(made[::step], np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None
    cells = (a != 0) & (b != 0)
    if float(((a != 0) == (b != 0)).mean()) < HOLDS or cells.sum() < 4 * sum(a.shape):
        return None
    quotient = np.where(cells, b / np.where(cells, a, 1.0), np.nan)
    if (quotient[cells] <= 0).any():
        return None
    log = np.log(quotient)
    rows, columns = np.zeros(len(a)), np.zeros(a.shape[1])
    some = cells.any(axis=0), cells.any(axis=1)
    for _ in range(ROUNDS):  # medians in turn: exact where it is a product
        rows[some[1]] = np.nanmedian(log[some[1]] - columns, axis=1)
        columns[some[0]] = np.nanmedian(log[:, some[0]] - rows[:, None], axis=0)
    left = np.abs(log - rows[:, None] - columns)[cells]
    if float((left < EXACT).mean()) < HOLDS:
        return None
    return np.asarray(np.where(some[0], np.exp(columns), np.nan))


def _computed(x: Array) -> Iterator[tuple[str, Array]]:
    """What a table says of the factors of its columns, up to one factor for all."""
    rows, has = len(x), (x != 0).sum(axis=0).astype(np.float64)
    with np.errstate(all="ignore"):
        yield "idf, log(rows / rows with it)", np.log(rows / has)
        yield "idf, log((1 + rows) / (1 + rows with it)) + 1", np.log((1 + rows) / (1 + has)) + 1
        yield "idf, log(rows / rows with it) + 1", np.log(rows / has) + 1
        yield "idf, log(1 + rows / rows with it)", np.log1p(rows / has)
        yield "idf, log(rows / (1 + rows with it))", np.log(rows / (1 + has))
        yield "one over the rows with it", 1.0 / has
        yield "one over the standard deviation", 1.0 / x.std(axis=0)
        yield "one over the mean", 1.0 / np.abs(x.mean(axis=0))
        yield "one over the largest value", 1.0 / np.abs(x).max(axis=0)
        yield "one over the root of the mean square", 1.0 / np.sqrt((x**2).mean(axis=0))
        yield "one over the root of the sum", 1.0 / np.sqrt(np.abs(x.sum(axis=0)))


def _finding(source: _Table, made: _Table, name: str, kept: Array, off: Array) -> Finding:
    moved = kept[off > SAME]
    return RULE.finding(
        f"{made.column.name} of {short(made.shard)} is {source.column.name} of {short(source.shard)} times a factor of "
        f"the row and one of the column, and the columns' factors are the right numbers ({name}) in another order: "
        f"{len(moved):,} of {len(kept):,} columns ({percent(len(moved) / len(kept))}) have that of another column, as "
        f"column {int(moved[0])}, off by {number(math.expm1(float(off[off > SAME][0])) * 100)} %: they were made with "
        "another order of the columns (another vocabulary, or sorted in between)",
        place(made.shard, made.column.name),
        made.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": made.column.name, "fields": (made.column.name,), "factors": name, "moved": len(moved),
                  "of": len(kept), "columns": tuple(int(k) for k in moved[:20]), "kind": "order",
                  "source": short(source.shard), "shard": short(made.shard)},
    )
