"""The numbers of one field are in two units: in rows of one client in seconds, in those of another in milliseconds.

Sorted by such a field, joined by it, scaled by its mean, rows of one side lie all beyond those of the other. Times are
looked at as well as measurements: of moments since 1970 each number tells its unit, of anything else two groups do that
never meet and are alike after a division by the factor of a unit. Where a field says what the unit is, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.displaced_times import SHARDS
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.roles import is_id_name, is_row_id, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.units_by_group import (
    APART,
    FACTORS,
    FEWEST,
    FILE,
    LEFT,
    MOST_ROWS,
    WITHIN,
    Kinds,
    MixedUnits,
    kinds_of,
    mixed_groups,
    mixed_moments,
)
from traindx_tools.on_data.used_by_code import UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_FIELDS = 400

RULE = Rule(
    id="D185",
    name="mixed-units",
    title="The numbers of one field are in two units",
    severity=Severity.MEDIUM,
    sees="the magnitude of each number of a time, and of each field by the groups of fields of few kinds",
    matters="Rows that are sorted, joined or scaled by the field stand in the wrong place.",
    alike=("A field that says what the number is or its unit, as in a long table: nothing is said.",
           "Groups of another size by nature: no known factor makes them alike.",
           "One shard or one stretch alone: D104, D142 and D145 tell it.",
           "Code that divides by the factor: a remark."),
    confirm=("Print the smallest and largest number of each group.",
             "Divide by the factor in a copy and sort again."),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "of the smaller side"),
        "apart": Threshold(APART, "distance of distribution functions", "of both sides as they are, at least"),
        "left": Threshold(LEFT, "distance of distribution functions", "after the division, at most beyond chance"),
        "within": Threshold(WITHIN, "of the factor", "that the ratio of the middles is off, beyond chance"),
        "least": Threshold(min(FACTORS), "times", "smaller ratios are common between groups"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each field, by the field of groups that is called as an origin where there are several."""
    for data in view.sets:
        known: dict[tuple[str, ...], tuple[Kinds, ...]] = {}
        for name in data.fields[:MOST_FIELDS]:
            group = tuple(s for s in data.shards if s.rows >= FEWEST and name in s.columns)
            if not group or name in data.labels or sum(s.rows for s in group) > MOST_ROWS:
                continue
            if not all(_measures(s.columns[name], s.rows) for s in group):
                continue
            names = tuple(s.name for s in group)
            if names not in known:
                known[names] = kinds_of(group)
            if (found := _found(group, name, known[names])) is not None:
                yield _finding(group, found)


def _measures(column: Column, rows: int) -> bool:
    return (column.kind == "number" and not column.row_shape and column.rows == rows
            and column.values.dtype.kind in "iuf")


def _found(group: Sequence[Shard], name: str, kinds: Sequence[Kinds]) -> MixedUnits | None:
    moments = mixed_moments(group, name, kinds)
    if moments is not None:
        return None if moments.declared or _told_elsewhere(moments) else moments
    if (is_id_name(name) or all(is_row_id(s.columns[name]) for s in group)) and not is_time(name):
        return None
    return next((m for m in mixed_groups(group, name, kinds) if not (m.declared or _told_elsewhere(m))), None)


def _told_elsewhere(found: MixedUnits) -> bool:
    """Whether it is one of several files, or one run of rows of a file: D145 tells those."""
    if found.by == FILE:
        return len(found.large) >= SHARDS and min(len(found.parts), len(found.rest)) == 1
    if found.by:
        return False
    edges = [int(np.abs(np.diff(m.astype(np.int8))).sum()) for m in found.large]
    return max(edges) <= 2 and sum(e > 0 for e in edges) == 1


def _finding(group: Sequence[Shard], found: MixedUnits) -> Finding:
    at = next(i for i, m in enumerate(found.large) if m.any())
    rows, total = sum(int(m.sum()) for m in found.large), sum(len(m) for m in found.large)
    first = int(np.flatnonzero(found.large[at])[0])
    of = found.by if found.by == FILE else f"rows of {found.by}"
    there = (f"in {of} {listed(found.parts, 3)} ({rows:,} of {total:,})" if found.by else
             f"in {rows:,} of {total:,} rows, {group[at].row(first)} first")
    beside = f"those of {listed(found.rest, 3)}" if found.by else "the others"
    said = (
        f"{found.field} of {short(group[at])} is {found.factor:,.0f} times as large {there} as in {beside}: "
        + (f"{found.told}; sorted by it these rows stand behind all others" if found.time or is_time(found.field) else
           f"divided by that the two are distributed alike: {found.told}")
    )
    sure = found.time or is_time(found.field) or found.origin
    return RULE.finding(
        said,
        place(group[at], found.field),
        group[at].name,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=None if sure else Severity.LOW,
        measured={"field": found.field, "by": found.by or "its magnitude", "parts": found.parts[:8],
                  "factor": found.factor, "rows": rows,
                  "share": rows / total, "shard": short(group[at]), "way": "moments" if found.time else "groups",
                  "kind": UNKNOWN},
    )
