"""In summer one column of a table is an hour late, while another one follows the clock on the wall the other way.

Weather that was fetched for local times less one hour, whatever the date, is right in winter and an hour late from the
end of March to the end of October, of every year. People's days say which clock the times keep: they come earlier in
summer on times that keep one clock, and then nothing can come later.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summer_hours import ALIKE, CALM, CHANGES, DAILY, NEAR, PART, Moves, moves_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D223",
    name="summer-hours",
    title="A column is an hour late in summer",
    severity=Severity.HIGH,
    sees="mean days of each column two weeks before and behind each change of the clocks, by the times of the rows",
    matters="For seven months of each year inputs are those of the hour before: mornings and evenings go wrong.",
    alike=("Times of one clock: people's days come earlier in summer, and the sun's stay.",
           "Times of the wall: people's days stay, and the sun's come an hour later.",
           "Days that drift with the seasons: they do so at other dates as well."),
    confirm=("Plot the mean day of the named columns a week before and behind a change of the clocks.",
             "Move the named columns by an hour in summer in a copy, and compare the error by month."),
    thresholds={
        "changes": Threshold(CHANGES, "changes of the clocks", "within the rows, each of which says the same"),
        "near": Threshold(NEAR, "hours", "by which a move may be off a whole one"),
        "part": Threshold(PART, "hours", "by which what people do comes earlier, at least"),
        "calm": Threshold(CALM, "of the least move", "that days move at other dates, at most"),
        "alike": Threshold(ALIKE, "correlation", "of both mean days, once one is moved"),
        "daily": Threshold(DAILY, "of a column's spread", "that its mean day varies by"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each file."""
    for data in view.sets:
        for shard in data.shards:
            found = moves_of(shard) if shard.columns and shard.rows else None
            if found is not None:
                yield _finding(shard, found)


def _finding(shard: Shard, found: Moves) -> Finding:
    late, early = listed(found.later, 4), listed(found.earlier, 4)
    are = "are" if len(found.later) > 1 else "is"
    return RULE.finding(
        f"{late} of {short(shard)} {are} an hour late in summer (daylight saving time), from row {found.first} on, in "
        f"all years: at each of {found.changes} changes of the clocks ({found.rules} dates) the mean day comes an hour "
        f"later by {found.time} in summer, while that of {early} comes earlier, as people's days do on times that keep "
        "one clock (UTC): on no times can both be. The hour of the clock on the wall was taken off twice, or not at "
        f"all (or, on local times, {early} is early)",
        place(shard, found.later[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": found.later[0], "fields": found.later, "others": found.earlier, "time": found.time,
                  "changes": found.changes, "rules": found.rules, "first": found.first, "hours": 1, "kind": "summer",
                  "shard": short(shard)},
    )
