"""The clock of one group of rows (a station, a meter, a site) is off by whole hours.

Daily cycles are learnt from all other groups. One whose days begin an hour or more later or earlier, in all of its
measures and by a whole number of hours, has its times in another zone or in summer time, whatever their label says.
Where it is so for a part of the year alone, that is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_field, by_file, told_by_another_field
from traindx_tools.on_data.day_phase import (
    AGREE,
    BLOCKS,
    CYCLE,
    NEAR,
    SURE,
    Phase,
    hour_bounds,
    phases,
    seconds_of,
)
from traindx_tools.on_data.panels import Panel, is_moment, measures, panel_of
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_MEASURES = 8
FEWEST_COLUMNS = 4
_SITE = re.compile(r"[_. -]?[A-Za-z]*\d+$")
"""What a column of one site has behind the name of the measure: a number, perhaps behind a word."""

RULE = Rule(
    id="D155",
    name="clock-of-group",
    title="The clock of one group of rows is off by whole hours",
    severity=Severity.MEDIUM,
    sees="the daily profile of each group against those of all others, for eight stretches of its days",
    matters="Rows are joined with the weather, the price or the load of another hour.",
    alike=(
        "A place further east or west: a fraction of an hour, or all places spread over the hours.",
        "A group with habits of its own: its profile is no shift of the others'.",
        "A field that names the zone of these rows: a remark.",
    ),
    confirm=("Plot one day of the group beside the same day of another one.",
             "Compare sunrise, or midnight of a counter, with the times of the rows."),
    thresholds={
        "cycle": Threshold(CYCLE, "correlation", "of the profiles of typical groups: below there is no daily cycle"),
        "whole": Threshold(NEAR, "hours", "from a whole number, at most"),
        "agree": Threshold(AGREE, "hours", "from no shift, of nine in ten of the other groups' stretches"),
        "sure": Threshold(SURE, "spreads", "of the other groups' shifts, which a shift of an hour and more makes"),
        "blocks": Threshold(BLOCKS, "stretches of days", "two in a row at least are shifted, and no others"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each way to cut the rows in which one group is late or early."""
    for data in view.sets:
        for group in data.splits.values():
            group = tuple(s for s in group if s.columns and s.rows)
            if group:
                yield from _of_group(data, group)


def _of_group(data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    if not any(is_moment(c) for c in group[0].columns.values()):
        return
    cuts = [*by_field(group, data.labels), *(c for c in by_file(group) if not c.by)]
    panel = panel_of(group)
    if not panel.time:
        return
    told: set[int] = set()
    for key in seconds_of(panel.key):
        yield from _of_columns(group, panel, key, data.labels)
        measured = [(n, v) for n, feature, v in measures(group, panel, data.labels) if not feature][:MOST_MEASURES]
        for cut in cuts if measured else []:
            member = np.concatenate([m[panel.row[panel.shard == i]] for i, m in enumerate(cut.member)])
            found = phases(key, member, len(cut.names), measured)
            first = int(np.flatnonzero(member == found.part)[0]) if found is not None else -1
            if found is not None and first not in told:
                told.add(first)
                yield _finding(group, panel, cut, found, key, member)


def _of_columns(group: Sequence[Shard], panel: Panel, key: Array, labels: Sequence[str]) -> Iterator[Finding]:
    """Columns that are called alike, one for each site: of which one has its days at other hours than all others."""
    families: dict[str, list[tuple[str, Array]]] = {}
    for name, feature, values in measures(group, panel, labels):
        if not feature:
            families.setdefault(_SITE.sub("", name), []).append((name, values))
    for some in (f for f in families.values() if len(f) >= FEWEST_COLUMNS):
        member = np.repeat(np.arange(len(some)), len(key))
        found = phases(np.tile(key, len(some)), member, len(some), [("values", np.concatenate([v for _, v in some]))])
        if found is None:
            continue
        name, shard = some[found.part][0], group[0]
        yield RULE.finding(
            f"{name} is shifted by {abs(found.hours)} hour{'s' * (abs(found.hours) != 1)} against the {len(some) - 1} "
            f"columns that are called alike: its days are {abs(found.found):.1f} hours "
            f"{'late' if found.hours > 0 else 'early'} there, and the others agree to {found.spread:.2f}",
            place(shard, name),
            shard.name,
            bearing=Bearing.SIGN,
            title="The days of one column are off by whole hours",
            measured={"field": name, "fields": (name, panel.time), "by": "column", "part": name, "hours": found.hours,
                      "late": round(found.found, 2), "kind": "whole" if found.last - found.first + 1 >= BLOCKS - 1
                      else "season", "shard": short(shard)},
        )


def _finding(group: Sequence[Shard], panel: Panel, cut: Cut, found: Phase, key: Array, member: Array) -> Finding:
    first = int(np.flatnonzero(member == found.part)[0])
    shard = group[panel.shard[first]]
    declared = told_by_another_field(group, cut, found.part, [panel.time, *found.measures])
    way = "late" if found.hours > 0 else "early"
    whole = found.last - found.first + 1 >= BLOCKS - 1
    said = (
        f"{panel.time} of {cut.told(found.part)} is off by {abs(found.hours)} hour{'s' * (abs(found.hours) != 1)}: the "
        f"days of {', '.join(found.measures[:3])} are {abs(found.found):.1f} hours {way} there against the "
        f"{len(cut.names) - 1} other groups, which agree to {found.spread:.2f}"
    )
    if not whole:
        ends = hour_bounds(key, found.first, found.last)
        near = [int(np.argmin(np.abs(key - e))) for e in ends]
        said += (f", from about row {panel.row[near[0]]} to row {panel.row[near[1]]} of "
                 f"{short(group[panel.shard[near[1]]])} and not in the rest of the time, as summer time is")
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(shard, panel.time),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None if cut.origin else Severity.LOW,
        measured={
            "field": panel.time, "fields": (panel.time, *found.measures), "by": cut.by or "file",
            "part": cut.names[found.part], "hours": found.hours, "late": round(found.found, 2),
            "kind": "declared" if declared else "whole" if whole else "season", "shard": short(shard),
        },
    )
