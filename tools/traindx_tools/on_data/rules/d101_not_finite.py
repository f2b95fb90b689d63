"""A field holds NaN or infinity.

One such value makes the loss of its batch NaN, and one optimizer step on that makes every weight NaN. Empty cells of
a table are counted apart: they are common, and the code that reads the table usually fills them. So they are a
remark, one for a set, unless one shard alone has them. Where a fifth of the values and more is NaN in every shard, or
another field of the same shape marks where they are, NaN stands for "not measured", and that is a remark too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.places import line_of, listed, number, of, percent, place, rows
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import Summary
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.on_data.whole_pass import MOST_POINTED
from traindx_tools.rules import Rule, Threshold

ON_PURPOSE = 0.2

RULE = Rule(
    id="D101",
    name="not-finite",
    title="NaN or infinity in the data",
    severity=Severity.HIGH,
    sees="every value that was read, by shard, field and row",
    matters="A single NaN in a batch makes every weight NaN after the next step.",
    alike=("Empty cells of a table, filled by the code that reads it.", "NaN as a mark for what was not measured."),
    confirm=("Load the named row and print it.",),
    thresholds={
        "on_purpose": Threshold(
            ON_PURPOSE,
            "share of values",
            "in every shard: a mark for missing values, which no failed step of preprocessing leaves so evenly",
        )
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and shard."""
    for data in view.sets:
        empty: list[tuple[Shard, Column]] = []
        for name in data.fields:
            yield from _of_field(data, name, empty)
        if empty:
            yield _remark(data, empty)


def _of_field(data: DataSet, name: str, empty: list[tuple[Shard, Column]]) -> Iterator[Finding]:
    shards = [s for s in data.shards if name in s.columns]
    shares = [1.0 - s.summaries[name].finite_share for s in shards]
    for shard in shards:
        column, seen = shard.columns[name], shard.summaries[name]
        if not seen.bad_row_count:
            continue
        if column.missing is not None and seen.nan == int(column.missing.sum()) and not seen.inf:
            if _alone(data, shard, column):
                yield _empty_in_one(data, shard, column)
            else:
                empty.append((shard, column))
            continue
        purpose = ON_PURPOSE <= min(shares) <= max(shares) < 1.0 or _marked(shard, column)
        what = " and ".join(
            t
            for t in (f"{seen.nan:,} NaN" if seen.nan else "", f"{seen.inf:,} infinite values" if seen.inf else "")
            if t
        )
        yield RULE.finding(
            f"{of(name, shard)} holds {what} in {seen.bad_row_count:,} of {_rows_seen(shard, seen):,} rows: "
            f"{rows(shard, seen.bad_rows, seen.bad_row_count)}",
            _first(shard, name, int(seen.bad_rows[0])),
            shard.name,
            bearing=Bearing.CAUSE,
            severity=Severity.INFO if purpose else None,
            measured={
                "field": name,
                "nan": seen.nan,
                "inf": seen.inf,
                "rows": tuple(int(i) for i in seen.bad_rows),
                "share": 1.0 - seen.finite_share,
                "kind": "on-purpose" if purpose else "not-finite",
            },
        )


def _rows_seen(shard: Shard, seen: Summary) -> int:
    """Of how many rows these are: of all, where a pass has looked for them and all that it found are in the sample."""
    all_there = shard.whole is not None and seen.bad_row_count <= min(MOST_POINTED, len(shard.whole.pointed))
    return shard.whole.rows if shard.whole is not None and all_there else seen.rows


def _first(shard: Shard, name: str, row: int) -> Location:
    """The place of the first of the rows: with its line, where it is of a text."""
    return replace(place(shard, name), line=line_of(shard, row))


def _marked(shard: Shard, column: Column) -> bool:
    """Whether another field marks the same places."""
    gaps = np.isnan(column.values)
    for other in shard.columns.values():
        if other.kind == "number" and other.values.shape == column.values.shape and other.values.dtype.kind in "biu":
            marks = other.values != 0
            if (marks == gaps).all() or (marks != gaps).all():
                return True
    return False


def _share(column: Column) -> float:
    return float(column.missing.mean()) if column.missing is not None else 0.0


def _siblings(data: DataSet, shard: Shard, name: str) -> list[Shard]:
    return [s for s in data.shards if s is not shard and s.split == shard.split and name in s.columns]


def _alone(data: DataSet, shard: Shard, column: Column) -> bool:
    """Whether the shard has empty cells and its siblings have none."""
    siblings = _siblings(data, shard, column.name)
    return len(siblings) >= 2 and _share(column) >= 0.01 and all(
        s.columns[column.name].missing is None for s in siblings)  # fmt: skip


def _empty_in_one(data: DataSet, shard: Shard, column: Column) -> Finding:
    assert column.missing is not None
    where, share = np.flatnonzero(column.missing), _share(column)
    return RULE.finding(
        f"{of(column.name, shard)} has {len(where):,} empty cells ({percent(share)}): {rows(shard, where)}; its "
        f"{len(_siblings(data, shard, column.name))} siblings have none",
        _first(shard, column.name, int(where[0])),
        shard.name,
        bearing=Bearing.SIGN,
        title="Empty cells",
        severity=Severity.MEDIUM,
        measured={"field": column.name, "share": share, "rows": tuple(int(i) for i in where[:20]),
                  "kind": "empty-in-one-shard", "finite": number(1.0 - share)},
    )


def _remark(data: DataSet, empty: Sequence[tuple[Shard, Column]]) -> Finding:
    """All empty cells of a set in one line, the emptiest field first."""
    by_field: dict[str, list[tuple[Shard, Column]]] = {}
    for shard, column in empty:
        by_field.setdefault(column.name, []).append((shard, column))
    order = sorted(by_field, key=lambda n: -max(_share(c) for _, c in by_field[n]))
    shard, column = max(by_field[order[0]], key=lambda e: _share(e[1]))
    assert column.missing is not None
    where = np.flatnonzero(column.missing)
    told = [f"{n} ({percent(max(_share(c) for _, c in by_field[n]))})" for n in order]
    return RULE.finding(
        f"{data.name} has empty cells in {listed(told)}; most in {of(column.name, shard)}: {rows(shard, where)}",
        _first(shard, column.name, int(where[0])),
        shard.name,
        bearing=Bearing.SIGN,
        title="Empty cells",
        severity=Severity.INFO,
        measured={"field": column.name, "fields": tuple(order[:20]), "share": _share(column),
                  "rows": tuple(int(i) for i in where[:20]), "kind": "empty", "finite": number(1.0 - _share(column))},
    )
