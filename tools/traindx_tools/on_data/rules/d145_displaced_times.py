"""The times of one shard, or of a stretch of rows, are displaced or in another unit.

Shards that follow each other in time leave room for each one. Where one lies elsewhere by as much as the room that it
left, and the same displacement brings it back between both neighbours, its clock was another: another time zone, a
year that was guessed, milliseconds among seconds. So does a stretch of rows after which the times go on as if it had
not been. A gap that does not come back is a pause, an hour is summer time, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.displaced_times import (
    FEWEST,
    SHARDS,
    WIDE,
    Displaced,
    displaced_shard,
    displaced_stretch,
    finite,
    told_by,
)
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.roles import is_epoch, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.times import times_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D145",
    name="displaced-times",
    title="The times of one part are displaced or in another unit",
    severity=Severity.MEDIUM,
    sees="where each shard's times lie between its neighbours', and the steps from row to row",
    matters="Features of the hour and the day, joins by time and splits by time are wrong there.",
    alike=("A pause: the times do not come back.", "Summer time: an hour.", "Shards in no order of time."),
    confirm=("Print the times at both edges.", "Take the displacement away in a copy and join again."),
    thresholds={
        "fewest": Threshold(FEWEST, "rows", "fewer tell no typical step"),
        "shards": Threshold(SHARDS, "shards", "fewer tell no order"),
        "wide": Threshold(WIDE, "typical steps", "that a step may have at most in the same recording"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field of times: the shard that is displaced, else a stretch of each file."""
    for data in view.sets:
        for name in data.fields:
            for group in data.siblings(name):
                shards = [s for s in group if s.rows >= FEWEST and s.numbers is None and _may_be(s.columns[name])]
                times = [t for s in shards if (t := times_of(s.columns[name])) is not None and finite(t)]
                if len(times) < len(shards):
                    continue
                found = displaced_shard(times)
                if found is not None:
                    yield _finding(shards, name, found)
                    continue
                seen = [d for i, t in enumerate(times) if (d := displaced_stretch(i, t)) is not None]
                if len(seen) <= max(1, len(times) // 4):
                    yield from (_finding(shards, name, d) for d in seen)


def _may_be(column: Column) -> bool:
    if column.kind == "text":
        return bool(column.texts)
    return column.kind == "number" and not column.row_shape and (is_time(column.name) or _epochs(column.values))


def _epochs(values: Array) -> bool:
    some = np.asarray(values[:: max(1, len(values) // 200)], np.float64)
    return len(some) > 1 and finite(some) and is_epoch(some)


def _finding(shards: Sequence[Shard], name: str, found: Displaced) -> Finding:
    shard = shards[found.index]
    first, last = (0, shard.rows - 1) if found.stretch is None else (found.stretch.start, found.stretch.end - 1)
    where = f"rows {first}..{last} of " if found.stretch is not None else ""
    return RULE.finding(
        f"the times in {name} of {where}{short(shard)} {told_by(found)}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "rows": (first, last), "seconds": found.by, "factor": found.factor,
                  "shard": short(shard), "kind": "unit" if found.factor != 1.0 else "displaced"},
    )
