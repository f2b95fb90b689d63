"""Whole numbers that should have gone below zero in a type without a sign: they came back at its upper end.

A background or an offset was taken off unsigned counts. What was left is small; what would have been negative stands
near 65,535 or 4,294,967,295, with nothing between. A mark for missing values is one number at the upper end, a counter
at its limit stands at the limit itself: neither is many numbers that grow fewer away from the edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import is_id_name, is_identifier
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RANGES = (2**8, 2**16, 2**32, 2**64)
ALONE = 2**16
FEWEST, KINDS = 12, 5
VOID = 0.6
EDGE = 0.1
MOST = 0.5
MOST_VALUES = 2**25

RULE = Rule(
    id="D201",
    name="below-zero",
    title="Numbers below zero came back at the upper end of an unsigned type",
    severity=Severity.HIGH,
    sees="whole numbers near zero and near the upper end of 8, 16, 32 and 64 bits, and what lies between",
    matters="A value of -1 reads as the largest of all: means, scales and gradients follow the few that wrapped.",
    alike=("One number at the upper end: a mark for what is missing.", "A sensor at its limit: it stays there.",
           "Hashes, ids and pictures: they fill what lies between."),
    confirm=("Subtract the range from the named values and plot them beside the others.",),
    thresholds={
        "fewest": Threshold(FEWEST, "values", "at the upper end"),
        "kinds": Threshold(KINDS, "different values", "at the upper end"),
        "void": Threshold(VOID, "of the range", "that holds nothing between the small and the large ones"),
        "edge": Threshold(EDGE, "of the spread of the large ones", "that the largest is below the edge at most"),
        "most": Threshold(MOST, "of the values", "that wrapped, at most"),
    },
)


@dataclass(frozen=True)
class _Wrapped:
    """Values at the upper end of a type."""

    bits: int
    at: Array
    """bool, of the flat values."""
    lowest: int
    """The smallest of them, as a number below zero."""


def check(view: View) -> Iterator[Finding]:
    """A finding for each file and field."""
    for data in view.sets:
        for name in data.fields:
            yield from _of_field(data, name)


def _of_field(data: DataSet, name: str) -> Iterator[Finding]:
    shards = [s for s in data.shards if s.rows and name in s.columns and _holds(s.columns[name])]
    seen = [(s, _wrapped(s.columns[name].values)) for s in shards]
    for shard, wrapped in seen:
        if wrapped is not None and (2**wrapped.bits >= ALONE or (
                len(seen) > 2 and all(w is None and _stays_low(s.columns[name]) for s, w in seen if s is not shard))):
            yield _finding(shard, name, wrapped, sum(w is None for _, w in seen), len(seen))


def _holds(column: Column) -> bool:
    return column.kind in ("number", "sequence") and 4 * FEWEST <= column.values.size <= MOST_VALUES and (
        column.values.dtype.kind in "iuf") and not is_id_name(column.name) and not is_identifier(column)


def _stays_low(column: Column) -> bool:
    return bool(np.asarray(column.values).max() < 2**7)


def _wrapped(values: Array) -> _Wrapped | None:
    flat = np.asarray(values).reshape(-1)
    low, high = flat.min(), flat.max()
    full = next((r for r in RANGES if high < r), 0) if low >= 0 else 0
    if not full or float(high) < (1.0 - VOID / 2) * full:
        return None
    if flat.dtype.kind == "f" and (full > 2**32 or not np.array_equal(flat, np.rint(flat))):
        return None
    large = flat >= np.asarray(full // 2).astype(flat.dtype)
    count = int(large.sum())
    if not FEWEST <= count <= MOST * len(flat):
        return None
    below = _below_zero(flat[large], full)
    kinds = np.unique(below)
    void = full - int(flat[~large].max()) + int(kinds[0])
    if len(kinds) < KINDS or void < VOID * full or not _grows_to_the_edge(below):
        return None
    return _Wrapped(full.bit_length() - 1, large, int(kinds[0]))


def _below_zero(values: Array, full: int) -> Array:
    """int64: the values less the range of the type."""
    if full == 2**64:
        return values.astype(np.uint64).view(np.int64)
    return np.asarray(values.astype(np.int64) - full)


def _grows_to_the_edge(below: Array) -> bool:
    """Whether they come to -1 or near it, and more of them lie near zero than far from it."""
    lowest, highest = int(below.min()), int(below.max())
    return -highest <= 1 + EDGE * (highest - lowest) and float(np.median(below)) >= lowest / 2


def _finding(shard: Shard, name: str, wrapped: _Wrapped, sound: int, of: int) -> Finding:
    column = shard.columns[name]
    flat = np.flatnonzero(wrapped.at)
    if column.offsets is not None:
        which = np.unique(np.searchsorted(column.offsets, flat, side="right") - 1)
    else:
        which = np.unique(flat // max(1, int(np.prod(column.row_shape))))
    values = np.asarray(column.values).reshape(-1)
    beside = f"; {sound} of the {of} files hold none" if sound else ""
    return RULE.finding(
        f"{name} of {short(shard)} went below zero in {wrapped.bits} bits without a sign and wrapped around: "
        f"{len(flat):,} values ({percent(len(flat) / len(values))}) in {len(which):,} rows stand at its upper end, "
        f"{values[flat[0]]:,.0f} for {int(_below_zero(values[flat[:1]], 2**wrapped.bits)[0]):,} and so on down to "
        f"{wrapped.lowest:,}, and all others are {float(values[~wrapped.at].max()):,.0f} at most: "
        f"{rows(shard, which)}{beside}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "count": len(flat), "rows": tuple(int(i) for i in which[:20]), "bits": wrapped.bits,
                  "lowest": wrapped.lowest, "kind": "below-zero", "shard": short(shard)},
    )
