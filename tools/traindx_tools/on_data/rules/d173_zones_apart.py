"""Two tables of one span of time tell it by clocks of different zones, and only one of them says which.

One says +00:00, the other nothing; both have as many rows of one cadence, and one begins and ends a whole number of
hours before the other. Joined by the texts of their times, each row meets one of hours before. Whether the program
converts the zone is the code's to say (`used_by_code.with_use`); without code it is a remark.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.used_by_code import UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST, MOST_TABLES = 100, 24
ALIKE = 0.01
QUARTER, FARTHEST = 900.0, 14 * 3600.0
_MOMENT = re.compile(r"\s*(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s*(Z|UTC|[+-]\d\d:?\d\d)?\s*$")

RULE = Rule(
    id="D173",
    name="zones-apart",
    title="The times of two tables are of different zones",
    severity=Severity.INFO,
    sees="first, last and usual step of the times of each table, and the zone that they name",
    matters="Rows that are joined by such times belong to different hours, and nothing fails.",
    alike=(
        "Tables that begin at different times: they do not end so much earlier too, with as many rows.",
        "Code that converts the zone: nothing is said.",
    ),
    confirm=("Print the first joined row with the times of both tables.",
             "Convert the zone of one in a copy, join again, and compare the loss."),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "of each table, and nearly as many"),
        "alike": Threshold(ALIKE, "share of the rows", "that one may have more"),
        "farthest": Threshold(FARTHEST, "seconds", "between two zones; whole quarters of an hour"),
    },
)


@dataclass(frozen=True)
class _Clock:
    """When a table begins and ends by its own clock, in seconds, its usual step, and the zone it names."""

    shard: Shard
    field: str
    first: float
    last: float
    step: float
    zone: str


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of tables, each table once."""
    shards = [s for d in view.sets for s in d.shards if s.columns and s.rows >= FEWEST and s.numbers is None]
    clocks = [c for s in itertools.islice(shards, MOST_TABLES) for n, col in s.columns.items()
              if (c := _clock(s, n, col)) is not None]
    told: set[str] = set()
    for one, other in itertools.permutations(clocks, 2):
        if one.zone and not other.zone and one.shard is not other.shard and one.shard.name not in told:
            apart = other.first - one.first
            if _are_apart(one, other, apart):
                told.add(one.shard.name)
                yield _finding(one, other, apart)


def _are_apart(one: _Clock, other: _Clock, apart: float) -> bool:
    rows = (one.shard.rows, other.shard.rows)
    return (one.step == other.step and max(rows) - min(rows) <= ALIKE * max(rows)
            and 0 < abs(apart) <= FARTHEST and apart % QUARTER == 0
            and abs(other.last - one.last - apart) <= one.step)


def _clock(shard: Shard, name: str, column: Column) -> _Clock | None:
    if column.kind != "text" or len(column.texts) != column.rows or _MOMENT.match(column.texts[0]) is None:
        return None
    at = np.unique(np.concatenate([np.arange(50), np.linspace(0, column.rows - 1, 50).astype(np.int64)]))
    found = [_MOMENT.match(column.texts[i]) for i in at]
    zones = {m[3] or "" for m in found if m is not None}
    if len(zones) != 1 or any(m is None for m in found):
        return None  # local time with its offset changes by season
    try:
        times: Array = np.array([f"{m[1]}T{m[2]}" for m in found if m is not None], "datetime64[ms]")
    except ValueError:
        return None
    seconds = times.astype(np.int64) / 1000.0
    step = float(np.median(np.diff(seconds[:50])))
    return _Clock(shard, name, float(seconds[0]), float(seconds[-1]), step, zones.pop()) if step > 0 else None


def _finding(one: _Clock, other: _Clock, apart: float) -> Finding:
    way = "before" if apart > 0 else "after"
    return RULE.finding(
        f"{one.field} of {short(one.shard)} names the zone {one.zone} and {other.field} of {short(other.shard)} names "
        f"none; with {one.shard.rows:,} and {other.shard.rows:,} rows, {short(one.shard)} begins and ends "
        f"{abs(apart) / 3600:g} hours {way} it by their texts; joined without a conversion each row meets another hour",
        place(one.shard, one.field),
        one.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": one.field, "hours": apart / 3600, "zone": one.zone, "beside": short(other.shard),
                  "kind": UNKNOWN, "shard": short(one.shard)},
    )
