"""Where a chain of rows breaks off, and whether a field of ends says so there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.chains import Chain, chains_of
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard

FEWEST, SHARE = 5, 0.05
"""Breaks that no field tells, and their share of all breaks."""
MOST_TRUE = 0.4
"""Share of the rows that a field of ends may mark."""
AT_BREAKS = 0.8
"""Share of the marks of a field of any name that stand at breaks."""
LIMITED = 0.02
"""Share of the episodes that must have the longest length for it to be a limit of time."""
CALLED = re.compile(
    r"(^|[_.])(terminal|terminated|termination|done|end|ended|ends|last|first|start|is_last|is_first|reset|timeout|"
    r"truncated|truncation|boundary|finished|over|eos|eoe|final|crash|absorbing|not_done|mask)s?$", re.IGNORECASE)
_CONTRARY = re.compile(r"(^|[_.])(not_done|non_?terminal|mask|continues?)s?$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Ends:
    """The breaks of one shard and what its fields say of them."""

    chain: Chain
    flags: tuple[str, ...]
    breaks: Array
    """int64: the rows behind which the chain breaks."""
    unmarked: Array
    """int64: those that no field marks and that no limit of time makes."""
    marked: int
    """How many breaks a field marks."""
    limit: int
    """Rows of the longest episodes, 0 where no limit is seen."""
    beyond: float
    """Share of the unmarked breaks whose next state lies beyond all states that rows go on from."""


def ends_of(shard: Shard) -> Ends | None:
    """None where there is no chain with breaks, or no field of ends beside it."""
    chains = chains_of(shard)
    if not chains:
        return None
    broken = np.logical_or.reduce([c.broken for c in chains])
    breaks = np.flatnonzero(broken)
    flags = _flags(shard, breaks)
    if len(breaks) < FEWEST or not flags:
        return None
    marked = np.zeros(shard.rows, bool)
    for column in flags:
        marked |= _marks(column, breaks)
    lengths = np.diff(np.concatenate([[-1], breaks]))
    longest = int(lengths.max())
    limit = longest if int((lengths == longest).sum()) >= max(2, LIMITED * len(breaks)) else 0
    unmarked = breaks[~marked[breaks] & (lengths != limit)]
    shown = max(chains, key=lambda c: shard.columns[c.own].values[0].size)
    return Ends(shown, tuple(c.name for c in flags), breaks, unmarked, int(marked[breaks].sum()), limit,
                _beyond(shard, chains, unmarked))


def _flags(shard: Shard, breaks: Array) -> list[Column]:
    """Fields of two values, of which one marks few rows: called as ends, or at breaks wherever they mark a row."""
    found = []
    for column in shard.columns.values():
        if column.kind != "number" or column.rows != shard.rows or column.row_shape not in ((), (1,)):
            continue
        values = column.values.reshape(-1)
        if not (values.dtype.kind == "b" or bool(((values == 0) | (values == 1)).all())):
            continue
        marks = _raw(column)
        if float(marks.mean()) > MOST_TRUE:
            continue
        precise = marks.sum() >= 3 and max(float(_at(m, breaks)) for m in _both(marks)) >= AT_BREAKS
        if precise or CALLED.search(column.name):
            found.append(column)
    return found


def _raw(column: Column) -> Array:
    marks = column.values.reshape(-1).astype(bool)
    return ~marks if _CONTRARY.search(column.name) else marks


def _both(marks: Array) -> tuple[Array, Array]:
    """Marks of last rows as they are, and those of first rows moved to the row before."""
    return marks, np.append(marks[1:], False)


def _at(marks: Array, breaks: Array) -> float:
    own = np.zeros(len(marks), bool)
    own[breaks] = own[-1] = True
    return float(own[marks].mean()) if marks.any() else 0.0


def _marks(column: Column, breaks: Array) -> Array:
    """bool shape (rows,): the last rows that a field marks, as it marks last or first ones."""
    return max(_both(_raw(column)), key=lambda m: _at(m, breaks))


def _beyond(shard: Shard, chains: Sequence[Chain], at: Array) -> float:
    if not len(at):
        return 0.0
    out = np.zeros(len(at), bool)
    for chain in chains:
        own, following = (shard.columns[n].values.reshape(shard.rows, -1) for n in (chain.own, chain.following))
        out |= ((following[at] > own.max(axis=0)) | (following[at] < own.min(axis=0))).any(axis=1)
    return float(out.mean())
