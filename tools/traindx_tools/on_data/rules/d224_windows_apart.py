"""A column counts the events of another window in one file: behind the row's time, or of another length.

Tickets of the last 30 days are counted again from the table of tickets, file by file. Where the training file counts
the 30 days that follow, the column knows the outcome, and the file to be scored, which counts those before, does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.view import View
from traindx_tools.on_data.window_counts import DAYS, EXACT, FEWEST, OTHERWISE, Window, WindowsApart, windows_apart
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D224",
    name="windows-apart",
    title="A column counts the events of another window in one file",
    severity=Severity.HIGH,
    sees="counts and sums of a table of events, by id, in windows before and behind the time of each row, by file",
    matters="What follows the row's time is what is to be predicted: training looks excellent, scoring has none of it.",
    alike=("A target that counts what follows, in all files: nothing is said.",
           "Files whose names say their windows: a remark.",
           "Events that came late, so that a few counts differ.", "One file, or no table of events beside it."),
    confirm=("Count the events of ten ids around the times of their rows.",),
    thresholds={
        "exact": Threshold(EXACT, "share of the rows", "that a file's own window gives exactly"),
        "otherwise": Threshold(OTHERWISE, "share of the rows", "that the other file's window gives, at most"),
        "longest": Threshold(DAYS[-1], "days", "of a window"),
        "rows": Threshold(FEWEST, "rows", "of a file"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each column."""
    told: set[tuple[str, str]] = set()
    for found in windows_apart(view.sets):
        if (found.shard.name, found.column) not in told:
            told.add((found.shard.name, found.column))
            yield _finding(found)


def _finding(found: WindowsApart) -> Finding:
    shard, events = short(found.shard), short(found.events)
    leak = found.own.behind
    said = (
        f"{found.column} of {shard} {_counts(found.own)} of {events} by {found.key} in {found.own.told} {found.time} "
        f"(so in {percent(found.holds)} of {found.rows:,} rows), and in {short(found.other)} in {found.usual.told} it "
        f"({percent(found.usual_there)} of the rows there, {percent(found.usual_here)} in {shard})"
    )
    said += (f": in {shard} it counts after {found.time} instead of before, and leaks the future" if leak else
             ": two windows under one name")
    return RULE.finding(
        said,
        place(found.shard, found.column),
        found.shard.name,
        bearing=Bearing.CAUSE,
        severity=None if leak else Severity.INFO if _is_named(found) else Severity.MEDIUM,
        measured={"field": found.column, "fields": (found.column,), "events": found.events.name, "days": found.own.days,
                  "usual_days": found.usual.days, "holds": found.holds, "usual_here": found.usual_here,
                  "shard": shard, "kind": "future" if leak else "window"},
    )


def _is_named(found: WindowsApart) -> bool:
    """Whether the name of a file says its window: then it is one by design."""
    names = ((found.shard, found.own), (found.other, found.usual))
    return any(str(w.days) in re.findall(r"\d+", short(s)) for s, w in names)


def _counts(window: Window) -> str:
    return f"adds up {window.of}" if window.of else "counts the rows"
