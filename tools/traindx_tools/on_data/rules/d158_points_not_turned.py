"""Pictures of one part were mirrored or turned, and the points or boxes on them were not.

What pictures show around a point, or in the middle of a box, is alike on most of them. In one part it is so only after
the pictures are turned: the points belong to the pictures as they were before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.marked_points import TURNS, Marked, fit, marked_arrays, marked_files
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

INSIDE, OUTSIDE = 0.8, 0.35
FEWEST = 20
LONGEST = 0.5
TELLS = 0.15

RULE = Rule(
    id="D158",
    name="points-not-turned",
    title="Pictures of one part were turned and the points on them were not",
    severity=Severity.HIGH,
    sees="the surroundings of points and the middles of boxes, on the pictures as they are and after six turns",
    matters="The model learns places at which nothing is, in this part alone.",
    alike=("Points that lie alike on both halves: both ways fit, and nothing is said.",
           "Pictures that were mirrored with their points: they fit as they are."),
    confirm=("Draw the points of ten rows of the part on their pictures, as they are and mirrored.",),
    thresholds={
        "inside": Threshold(INSIDE, "share of the rows", "of the part that fit better after the turn"),
        "outside": Threshold(OUTSIDE, "share of the rows", "of the others that do, at most"),
        "tells": Threshold(TELLS, "of the variance", "by which surroundings of the others fit better as they are"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts, turns and stretches"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each set of points and part."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        told: set[tuple[str, tuple[str, ...]]] = set()
        for marked in (*marked_arrays(group), *marked_files(view, group)) if group else ():
            if (marked.table.name, marked.fields) not in told:
                for found in _of_points(data, marked, view.comparisons):
                    told.add((marked.table.name, marked.fields))
                    yield found


def _of_points(data: DataSet, marked: Marked, comparisons: int) -> Iterator[Finding]:
    if len(marked.row) < 3 * FEWEST:
        return
    own = fit(marked, marked.pictures)
    cuts = [c for c in cuts_of([marked.table], data.labels) if c.by not in marked.fields]
    tries = comparisons * len(TURNS) * max(1, sum(len(c.names) for c in cuts))
    best: tuple[float, str, Array, Cut | None, int] | None = None
    for told, turn in TURNS:
        after = fit(marked, turn(marked.pictures))
        better = after > own
        for cut in cuts:
            member = cut.member[0][marked.row]
            for part in range(len(cut.names)):
                found = _chance(better, after, own, member == part, tries)
                if found is not None and (best is None or found < best[0]):
                    best = found, told, member == part, cut, part
        stretch = heaviest(np.where(better, 1.0, -1.0))
        if FEWEST <= stretch.rows <= LONGEST * len(better):
            found = _chance(better, after, own, stretch.inside(len(better)), tries * len(better) ** 2 / 2)
            if found is not None and (best is None or found < best[0]):
                best = found, told, stretch.inside(len(better)), None, -1
    if best is not None:
        yield _finding(marked, *best[1:])


def _chance(better: Array, after: Array, own: Array, inside: Array, tries: float) -> float | None:
    """The chance that so many rows of a part fit better after a turn; None where it is no plain turn."""
    if not FEWEST <= int(inside.sum()) <= LONGEST * len(inside):
        return None
    within, without = float(better[inside].mean()), float(better[~inside].mean())
    if within < INSIDE or without > OUTSIDE:
        return None
    gap = float(np.median((own - after)[~inside])) / max(1e-9, float(np.median(-after[~inside])))
    back = float(np.median(after[inside])) - float(np.median(own[~inside]))
    if gap < TELLS or back < -0.5 * float(np.median((own - after)[~inside])):
        return None  # surroundings tell nothing, or the turned rows are still unlike the others
    p = share_tail(int(better[inside].sum()), int(inside.sum()), max(0.5, without))
    return p * tries if p * tries < LEVEL else None


def _finding(marked: Marked, told: str, inside: Array, cut: Cut | None, part: int) -> Finding:
    shard = marked.table
    rows = marked.row[inside]
    where = (cut.told(part) if cut is not None
             else f"rows {int(rows[0])}..{int(rows[-1])} of {short(shard)}")
    declared = told_by_another_field([shard], cut, part, marked.fields) if cut is not None else ""
    named = ", ".join(marked.fields[:4]) + (" and more" if len(marked.fields) > 4 else "")
    said = (
        f"{named} of {where}: the pictures were {told} and the points on them were not; what the pictures show at the "
        f"points is as on the others only after turning them back ({int(inside.sum())} of {len(inside)} rows that were "
        f"looked at)"
    )
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(shard, marked.fields[-1]),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={
            "field": marked.fields[-1], "fields": marked.fields, "change": told, "count": int(inside.sum()),
            "share": percent(float(inside.mean())), "by": cut.by or "file" if cut is not None else "stretch",
            "part": cut.names[part] if cut is not None else "", "rows": (int(rows[0]), int(rows[-1])),
            "kind": "declared" if declared else "turned", "shard": short(shard),
        },
    )
