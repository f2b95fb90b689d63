"""Times were written with a clock of twelve hours and without AM and PM: afternoons lie on the nights.

No row has hour 0 or an hour from 13 on, hour 12 occurs, every day has its rows, and each time stands there twice: the
format `%I:%M` (or `hh:mm`) was meant to be `%H:%M`. What is joined or resampled by such times is the mean of a morning
and an afternoon, and half of each day is empty.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.calendar_parts import DAY, seconds_of
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

HOURS, FEWEST, DAYS, TWICE, MOST = 12, 200, 5, 0.8, 200_000

RULE = Rule(
    id="D228",
    name="twelve-hours",
    title="Times are those of a clock of twelve hours",
    severity=Severity.HIGH,
    sees="the hours of each field of times, and how often each time occurs",
    matters="Every afternoon is read as the night before it: what is joined by these times is the mean of both.",
    alike=("Rows of mornings or of opening hours alone: each time is there once.",
           "AM or PM beside the hour: it is read, and hours from 13 on are there.",
           "Times to the day: they have no hours."),
    confirm=("Count the rows by hour, and print the rows of one day in the order of the file.",
             "Write the file again with %H in place of %I; where rows stand in the order of time, add twelve hours to "
             "the second half of each day in a copy."),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "with a time of day"),
        "days": Threshold(DAYS, "days", "that have rows"),
        "twice": Threshold(TWICE, "of the times", "that stand there an even number of times; of the days, on which "
                           "hours begin anew after 12"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each field of times."""
    for data in view.sets:
        for shard in data.shards:
            for name, column in shard.columns.items():
                if column.kind == "text" and column.rows == shard.rows and not column.row_shape and column.texts:
                    rows = np.arange(min(shard.rows, MOST))
                    seconds = seconds_of(column, rows) if len(column.texts) == shard.rows else None
                    if seconds is not None and (found := _twelve(seconds)) is not None:
                        yield _finding(shard, name, *found)


def _twelve(seconds: Array) -> tuple[int, float, int] | None:
    """Days, the share of times that stand there twice, and the first row; None where hours go on behind 12."""
    times = np.asarray(seconds[np.isfinite(seconds)], np.int64)
    if len(times) < FEWEST:
        return None
    hours = times % DAY // 3600
    kinds = np.unique(hours)
    days = len(np.unique(times // DAY))
    if not np.array_equal(kinds, np.arange(1, HOURS + 1)) or days < DAYS:
        return None
    counts = np.unique(times, return_counts=True)[1]
    twice = float((counts % 2 == 0).mean())
    date = times // DAY  # after 12 the hours of one date begin anew at 1: midnight is its first hour
    anew = (hours[:-1] == HOURS) & (hours[1:] < HOURS) & (date[:-1] == date[1:])
    if len(np.unique(date[:-1][anew])) < TWICE * days:
        return None
    return (days, twice, int(np.flatnonzero(hours == HOURS)[0])) if twice >= TWICE else None


def _finding(shard: Shard, name: str, days: int, twice: float, first: int) -> Finding:
    return RULE.finding(
        f"no {name} of {short(shard)} has an hour of 0 or from 13 to 23, on {days:,} days, and {number(100 * twice)} % "
        "of the times stand there twice (or an even number of times): a clock of twelve hours without AM and PM (%I "
        "for %H): afternoons stand on the times of the mornings and nights; midnight and noon are both 12 "
        f"({shard.row(first)})",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "days": days, "twice": round(twice, 4), "kind": "twelve", "shard": short(shard)},
    )
