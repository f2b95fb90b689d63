"""Masks of one part (a site, a scanner, a folder) are mirrored or turned against their pictures.

Brightness, colours and edges of a picture tell where its mask lies. A simple model of that, learned on all, fits the
masks of one part only after they are turned: they belong to the pictures as they were before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, told_by_another_field
from traindx_tools.on_data.mask_turns import FEWEST, TURNS, Overlaid, fits, overlaid
from traindx_tools.on_data.places import number, percent, place, short
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

INSIDE, OUTSIDE = 0.75, 0.35
EACH = 12
LONGEST = 0.55
TELLS = 0.15
BACK = 0.5

RULE = Rule(
    id="D168",
    name="masks-turned",
    title="Masks of one part are mirrored or turned against their pictures",
    severity=Severity.HIGH,
    sees="how well pictures tell their masks at the same place, as they are and after seven turns, by field, folder, "
         "file and stretch",
    matters="The model learns to mark what lies on the other side, in this part alone.",
    alike=("Masks that lie alike on both halves: both ways fit, and nothing is said.",
           "Pictures that were turned with their masks: they fit as they are.",
           "Pictures that tell nothing of their masks: nothing is said."),
    confirm=("Draw the outlines of ten masks of the part on their pictures, as they are and turned.",),
    thresholds={
        "inside": Threshold(INSIDE, "share of the part's masks", "that fit better after the turn"),
        "outside": Threshold(OUTSIDE, "share of the others", "that do, at most"),
        "tells": Threshold(TELLS, "correlation", "by which the others fit better as they are, at the median"),
        "back": Threshold(BACK, "of the others' fit", "that the part's masks must reach after the turn"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts, turns and stretches"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of pictures and masks: the part and the turn that stand out most."""
    for found in overlaid(view):
        if len(found.row) >= FEWEST and (seen := fits(found)) is not None:
            own, turned = seen
            best = _best(found, own, turned, view.comparisons)
            if best is not None:
                yield _finding(found, own, *best)


def _best(
    found: Overlaid, own: Array, turned: list[tuple[str, Array]], comparisons: int
) -> tuple[str, Array, Array, Cut | None, int] | None:
    best: tuple[tuple[float, float], str, Array, Array, Cut | None, int] | None = None
    tries = comparisons * len(TURNS) * max(1, sum(len(c.names) for c in found.cuts))
    for told, after in turned:
        parts: list[tuple[Array, Cut | None, int, float]] = [
            (c.member[0] == p, c, p, tries) for c in found.cuts if c.by not in found.fields
            for p in range(len(c.names))]
        stretch = heaviest(np.where(after > own, 1.0, -1.0))
        parts.append((stretch.inside(len(own)), None, -1, tries * len(own) ** 2 / 2))
        for inside, cut, part, within in parts:
            gain = _gain(own, after, inside, within)
            if gain is None:
                continue
            score = round(gain, 2), float(inside.sum() if cut is None else 1e6)
            if best is None or score > best[0]:
                best = score, told, after, inside, cut, part
    return best[1:] if best is not None else None


def _gain(own: Array, after: Array, inside: Array, tries: float) -> float | None:
    """By how much the masks of a part fit better after a turn; None where it is not surely turned."""
    if not EACH <= int(inside.sum()) <= LONGEST * len(inside):
        return None
    better = after > own
    within, without = float(better[inside].mean()), float(better[~inside].mean())
    usual, gap = float(np.median(own[~inside])), float(np.median((own - after)[~inside]))
    back = float(np.median(after[inside]))
    if within < INSIDE or without > OUTSIDE or gap < TELLS or back < BACK * usual:
        return None
    if float(np.median((after - own)[inside])) < BACK * gap:
        return None
    p = share_tail(int(better[inside].sum()), int(inside.sum()), max(without, 1.0 / len(own))) * tries
    return float(np.median((after - own)[inside])) if p < LEVEL else None


def _finding(
    found: Overlaid, own: Array, told: str, after: Array, inside: Array, cut: Cut | None, part: int
) -> Finding:
    at = np.flatnonzero(inside)
    shard = found.shards[int(found.shard[at[0]])]
    rows = found.row[at[found.shard[at] == found.shard[at[0]]]]
    if cut is None:
        where = f"rows {int(rows.min())}..{int(rows.max())} of {short(shard)}"
    else:
        where = cut.told(part).replace("the rows of", "the rows with") if cut.by else cut.told(part)
    by_names = bool(shard.row_names) and not shard.columns.keys() >= set(found.fields)
    declared = "" if cut is None or by_names else told_by_another_field(
        found.shards, _whole(found, cut), part, found.fields)
    names = f": {shard.row(int(rows[0]))}, {shard.row(int(rows[-1]))}" if by_names else ""
    better = after > own
    fit = [number(float(np.median(v[inside]))) for v in (after, own)]
    said = (
        f"{found.fields[1]} of {where} are {told} against {found.fields[0]}: turned back, "
        f"{percent(float(better[inside].mean()))} of them fit better ({fit[0]} against {fit[1]}, correlation with what "
        f"the pictures say), and {percent(float(better[~inside].mean()))} of all others{names}"
    )
    return RULE.finding(
        said + (f"; {declared}" if declared else ""),
        place(shard, found.fields[1]),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={"field": found.fields[1], "fields": found.fields, "change": told, "count": len(at),
                  "by": "stretch" if cut is None else cut.by or "file", "part": "" if cut is None else cut.names[part],
                  "rows": (int(rows.min()), int(rows.max())) if cut is None else tuple(int(r) for r in rows[:20]),
                  "before": float(np.median(own[inside])), "after": float(np.median(after[inside])),
                  "kind": "declared" if declared else "turned", "shard": short(shard)},
    )


def _whole(found: Overlaid, cut: Cut) -> Cut:
    """The cut with all rows of each shard: those that were not looked at are of no part."""
    member = []
    for i, shard in enumerate(found.shards):
        own = np.full(shard.rows, -1, np.int64)
        own[found.row[found.shard == i]] = cut.member[0][found.shard == i]
        member.append(own)
    return Cut(cut.by, cut.names, tuple(member), cut.origin)
