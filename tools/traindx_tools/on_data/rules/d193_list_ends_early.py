"""A list of row numbers ends long before the table that it is for.

Numbers of usable, chosen or shuffled rows are kept on disk, because finding them is slow. Where the table has grown
since, the list is read as it was: rows that came later are never used, and nothing fails. Told of a list that picks
some of the rows all along its length and none from a place on; lists of other splits that name the rest, and lists of
all rows up to a place (a split in time) are meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 50
SOME, NEARLY_ALL = 0.2, 0.98
LEFT = 0.05
STRETCHES = 10
MOST_FIRST = 10_000

RULE = Rule(
    id="D193",
    name="list-ends-early",
    title="A list of row numbers ends before the rows do",
    severity=Severity.MEDIUM,
    sees="lists of different whole numbers beside a table that has more rows than they reach",
    matters="Rows that came after the list was made are never used: whole classes, sites or months may be missing.",
    alike=("A split in time: all rows up to a place.", "Other lists beside it that name the rest."),
    confirm=("Delete the list, or give it another name, and let the program make it anew: it becomes longer.",),
    thresholds={
        "fewest": Threshold(FEWEST, "numbers", "of a list"),
        "some": Threshold(SOME, "of the rows up to its end", "that it names at least, in each tenth of them"),
        "all": Threshold(NEARLY_ALL, "of them", "that it names at most: else it is a split"),
        "left": Threshold(LEFT, "of the rows", "behind its end at least"),
        "level": Threshold(LEVEL, "probability", "that none of the rest is named by chance"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each list."""
    lists = [(s, v) for d in view.sets for s in d.shards if (v := _numbers(s)) is not None]
    tables = [s for d in view.sets for s in d.shards if len(s.columns) > 0 and s.rows == s.total and s.numbers is None]
    named = [r for file in view.split_files for r in file.rows.values()]
    for shard, values in lists:
        own = [t.rows for t in tables if t.name != shard.name and t.rows > int(values.max()) and _is_table(t)]
        rows = max(set(own), key=lambda n: (own.count(n), -n), default=0)
        others = [v for s, v in lists if s.name != shard.name] + named
        if rows and _ends_early(values, rows, others, view.comparisons):
            yield _finding(shard, values, next(t for t in tables if t.rows == rows and _is_table(t)))


def _numbers(shard: Shard) -> Array | None:
    """int64 (n,): the values of a file of nothing but different whole numbers from 0 on."""
    if len(shard.columns) != 1 or shard.rows != shard.total or shard.rows < FEWEST:
        return None
    column = next(iter(shard.columns.values()))
    if column.kind != "number" or column.row_shape or column.values.dtype.kind not in "iu":
        return None
    first = column.values[:MOST_FIRST]
    if len(distinct(first)) < len(first):  # told without a look at the others
        return None
    values = np.asarray(column.values, np.int64)
    return values if int(values.min()) >= 0 and len(distinct(values)) == len(values) else None


def _is_table(shard: Shard) -> bool:
    return _numbers(shard) is None


def _ends_early(values: Array, rows: int, others: Sequence[Array], comparisons: int) -> bool:
    end = int(values.max()) + 1
    share = len(values) / end
    rest = any(len(o) and int(o.max()) >= end for o in others)
    if rest or rows - end < LEFT * rows or not SOME <= share <= NEARLY_ALL:
        return False
    parts = np.bincount(np.minimum(values * STRETCHES // end, STRETCHES - 1), minlength=STRETCHES) * STRETCHES / end
    chance = len(values) * math.log(end / rows)
    return bool(parts.min() >= SOME) and chance + math.log(max(1, comparisons)) < math.log(LEVEL)


def _finding(shard: Shard, values: Array, table: Shard) -> Finding:
    end = int(values.max()) + 1
    name, left = next(iter(shard.columns)), table.rows - end
    return RULE.finding(
        f"the {len(values):,} numbers of {short(shard)} name {percent(len(values) / end)} of the rows 0..{end - 1} and "
        f"none of the other {left:,} of {short(table)} ({percent(left / table.rows)}): a list of rows that was made "
        "when the table was shorter",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        measured={"field": name, "end": end, "rows": table.rows, "share": len(values) / end, "shard": short(shard),
                  "other": short(table), "kind": "list"},
    )
