"""From some row on one group of rows (a station, a device, a laboratory) is measured otherwise; the other groups go on.

A station that changes its unit, a sensor that was set anew, an export of another program. What all groups do at the
same time is taken away first, so that a season or a campaign is no change, and a drift has no end at which it is
sharp. Told is what a plain operation undoes: the ratio of two units, another scale of temperature, a sign, an offset.
A group whose level moves otherwise is a remark, and so is what a field of the same rows says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_field, by_file, told_by_another_field
from traindx_tools.on_data.group_changes import BESIDE, OTHERS, SHARP, Change, changes, most_changed
from traindx_tools.on_data.odd_groups import SMALL, TELLING
from traindx_tools.on_data.odd_parts import APART, SHORTEST
from traindx_tools.on_data.panels import Panel, measures, panel_of
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

OFFSET = 1.5
"""Spreads of what is left of a value, that an offset has at least."""
IN_ORDER = 2.5
"""The same where groups follow a season: what is left of it is in an order, and longer than chance makes."""
FOR_A_WHILE = 5.0
"""The same of an offset or a small factor that ends again: a promotion, a treatment and a fault of a machine do."""
MOST_LOOKS = 1200
"""Groups times measures that are looked at: some seconds."""
STRAYS = 2.0
"""Times as far as any twenty rows of the group stray by themselves."""

RULE = Rule(
    id="D150",
    name="changed-group",
    title="From some row on one group is measured otherwise",
    severity=Severity.MEDIUM,
    sees="each measure of each group of rows along its time, less what all groups do at that time",
    matters="The same number means two things in one group; a model takes the change for what it should learn.",
    alike=(
        "A season, a market, a campaign: the other groups change too.",
        "A drift: no row at which it begins.",
        "A field that names the unit or the device of these rows: a remark.",
    ),
    confirm=("Print ten rows of the group before the named row and ten behind it.", "Ask what changed there that day."),
    thresholds={
        "apart": Threshold(APART, "distance of distribution functions", "of what is left, in the stretch and outside"),
        "sharp": Threshold(SHARP, f"of the step, in the {BESIDE} rows beside an end", "a drift shows none of it"),
        "offset": Threshold(OFFSET, "spreads of what is left", "of an offset; less may be a group's own level"),
        "strays": Threshold(STRAYS, "times as far", "as any rows outside stray, which an offset must be"),
        "rows": Threshold(SHORTEST, "rows of the group", "of the stretch, and of the rest"),
        "others": Threshold(OTHERS, "groups", "of which one may break; where more do, groups change by nature"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all groups, measures and stretches"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each group and the measure that tells most of it."""
    for data in view.sets:
        for group in data.splits.values():
            group = tuple(s for s in group if s.columns and s.rows and s.numbers is None)
            if group:
                yield from _of_group(data, group)


def _of_group(data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    cuts = list(by_field(group, data.labels))
    panel = panel_of(group) if cuts or len(group) > 2 else None
    if panel is None:
        return
    cuts += [c for c in by_file(group) if panel.time and not c.by]  # files without a time have no time in common
    measured = list(measures(group, panel, data.labels)) if cuts else []
    looks = sum(len(c.names) for c in cuts)
    measured = measured[: max(1, MOST_LOOKS // max(1, looks))]
    comparisons = max(1, len(measured) * len(cuts))
    told: set[tuple[str, int]] = set()
    for cut in cuts:
        member = np.concatenate([m[panel.row[panel.shard == i]] for i, m in enumerate(cut.member)])
        found: dict[int, list[tuple[Change, str, str]]] = {}
        for name, feature, values in measured:
            for change in changes(values, member, cut, _key(panel, member, cut), comparisons):
                found.setdefault(change.part, []).append((change, name, feature))
        for seen in found.values():
            best = most_changed([c for c, _, _ in seen])
            name, feature = next((n, f) for c, n, f in seen if c is best)
            at = (name, int(best.rows[0]))
            if at not in told:  # a device stands at one site: it is told once
                told.add(at)
                fields = tuple(dict.fromkeys(n for _, n, _ in seen))
                yield _finding(group, panel, cut, best, (name, feature), fields)


def _key(panel: Panel, member: Array, cut: Cut) -> Array | None:
    """What orders the rows: their time; else their place, or the place within a group where all are as long."""
    if panel.time:
        return panel.key
    counts = np.bincount(member[member >= 0], minlength=len(cut.names))
    blocks = np.count_nonzero(np.diff(member)) < 2 * len(cut.names)
    if not blocks:
        return panel.key
    if counts.min() < counts.max():
        return None
    key = np.zeros(len(member))
    for part in range(len(cut.names)):
        key[member == part] = np.arange(counts[part])
    return key


def _finding(group: Sequence[Shard], panel: Panel, cut: Cut, change: Change, named: tuple[str, str],
             fields: tuple[str, ...]) -> Finding:
    name, feature = named
    first, last = int(change.rows[0]), int(change.rows[-1])
    shard, end = group[panel.shard[first]], group[panel.shard[last]]
    own = np.concatenate([m[panel.row[panel.shard == i]] for i, m in enumerate(cut.member)]) == change.part
    ordered = np.flatnonzero(own)[np.argsort(panel.key[own], kind="stable")]
    whole = last == int(ordered[-1])
    repair = change.repair
    clear = abs(change.shift) >= max(IN_ORDER if change.follows else OFFSET, STRAYS * change.wander)
    clear = clear and (whole or abs(change.shift) >= FOR_A_WHILE)
    scaled = change.ratio is not None and (clear or max(change.ratio, 1 / change.ratio) >= SMALL) and (
        repair is None or repair.name.startswith(("divide", "offset")))
    telling = scaled or (repair is not None and repair.name.startswith(TELLING[1:]))
    offset = repair is not None and repair.name == "offset" and clear
    declared = _declared(group, panel, cut, change, fields)
    what = f"{name}{f' ({feature})' if feature else ''}"
    when = f", {panel.time} {_time(shard, panel, first)}" if panel.time else ""
    said = f"{what} of {cut.told(change.part)} is otherwise from row {panel.row[first]} of {short(shard)} on{when}"
    said += "" if whole else f", up to row {panel.row[last]} of {short(end)}"
    said += (f": its median is {number(float(np.median(change.mine)))} there, where its other rows and the "
             f"{len(cut.names) - 1} other groups make {number(float(np.median(change.expected)))}")
    said += f"; {_undone(change, scaled)}; {declared}".removesuffix("; ")
    small = scaled and change.ratio is not None and max(change.ratio, 1 / change.ratio) <= SMALL
    remark = bool(declared) or not (telling or offset)
    return RULE.finding(
        said,
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.INFO if remark else Severity.LOW if small or not telling or not cut.origin else None,
        measured={
            "field": name, "fields": fields, "by": cut.by or "file", "part": cut.names[change.part],
            "rows": (int(panel.row[first]), int(panel.row[last])), "count": len(change.rows),
            "repair": f"divide by {change.ratio:.3g}" if scaled else repair.name if repair is not None else "",
            "units": change.units, "shift": change.shift, "log_p": change.log_chance,
            "shard": short(shard), "kind": "declared" if declared else "unit" if telling else "offset" if offset
            else "level",
        },
    )


def _undone(change: Change, scaled: bool) -> str:
    """The operation after which the stretch is as the rest of the group is."""
    if scaled and change.ratio is not None:
        units = f", as {' or '.join(change.units)} make" if change.units else ", which is the ratio of no units in use"
        return f"divided by {change.ratio:.3g} it is as the other rows{units}"
    return change.repair.told.replace("as all others", "as the other rows") if change.repair is not None else (
        "no plain operation makes it like the other rows")


def _time(shard: Shard, panel: Panel, at: int) -> str:
    column, row = shard.columns[panel.time], int(panel.row[at])
    return column.texts[row][:40] if column.kind == "text" else f"{column.values[row]}"


def _declared(group: Sequence[Shard], panel: Panel, cut: Cut, change: Change, fields: Sequence[str]) -> str:
    """A field that has one value in the stretch and hardly elsewhere: it says what is other there."""
    mask = [np.full(s.rows, -1, np.int64) for s in group]
    for i in range(len(group)):
        mask[i][panel.row[panel.shard == i]] = 0
        mask[i][panel.row[change.rows[panel.shard[change.rows] == i]]] = 1
    stretch = Cut(cut.by, ("others", "stretch"), tuple(mask), cut.origin)
    return told_by_another_field(group, stretch, 1, [*fields, panel.time])
