"""In one part of the rows two fields stand to each other as in no other part: exchanged, turned, written otherwise.

What is compared are relations and not levels, which files, annotators and devices have of their own: which of two
numbers is the larger one, whether both rise together, how boxes are written. Parts are files, splits, the values of
fields that name groups, and stretches of a file. A part is named only where all others agree and one plain operation
makes it like them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.box_forms import other_forms
from traindx_tools.on_data.cuts import Cut, cuts_of, in_two, told_by_another_field
from traindx_tools.on_data.odd_parts import odd_stretch
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.relations import (
    CONTRARY,
    ORDERED,
    TELLS,
    Contrary,
    Features,
    contrary_orders,
    contrary_signs,
    exchanged,
    features_of,
    listed_features,
)
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D146",
    name="contrary-relation",
    title="Two fields stand to each other otherwise in one part of the rows",
    severity=Severity.HIGH,
    sees="order and rank correlation of pairs of numbers, and the form of boxes, by file, split, group and stretch",
    matters="The model reads one quantity as another, or as its opposite, in this part, and averages hide it.",
    alike=(
        "Annotators of another strictness, devices of another level: their relations are those of the others.",
        "A relation that is weaker in one part, or another one: no operation makes it like the others.",
        "A field that tells the form, as box_format does: a remark.",
    ),
    confirm=("Look at ten rows of the part beside ten others.", "Undo the operation in a copy and train again."),
    thresholds={
        "ordered": Threshold(ORDERED, "share of the rows", "in each other part, in which the same one is larger"),
        "contrary": Threshold(CONTRARY, "share of the rows", "of the part, in which the other one is"),
        "tells": Threshold(TELLS, "rank correlation", "in each other part; a half where there are three parts"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts and pairs of fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each contrary part and way to cut the rows."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        features = features_of(group) if group else None
        listed = listed_features(group) if group else []
        for x in listed if features is None else [features, *listed]:
            yield from _of_set(data, group, x)


def _of_set(data: DataSet, group: Sequence[Shard], x: Features) -> Iterator[Finding]:
    cuts = list(cuts_of(group, data.labels))
    two = [] if cuts else [c for c in in_two(group) if c.by == ""]
    pairs = len(x.names) * (len(x.names) - 1) / 2
    parts = sum(len(c.names) for c in cuts) + len(group)
    told: set[tuple[str, ...]] = set()
    for cut in (*cuts, *two):
        member = np.concatenate([m[x.row[x.shard == i]] for i, m in enumerate(cut.member)])
        beside = np.array([n == cut.by for n in x.fields])
        found = [c for look in ((other_forms,) if two else (contrary_orders, other_forms, contrary_signs))
                 for c in look(x, member, len(cut.names), pairs * parts)]
        found = [c for c in found if not any(beside[x.names.index(f)] for f in c.fields)]
        surest = [_surest([c for c in found if c.part == part]) for part in dict.fromkeys(c.part for c in found)]
        surest = [mine for mine in surest if mine[0].fields not in told]
        odd = Counter(mine[0].fields for mine in surest)
        told |= odd.keys()
        for mine in surest:
            yield _finding(group, cut, mine, odd[mine[0].fields])
    if not told:
        yield from _stretches(group, x, pairs * parts)


def _surest(found: Sequence[Contrary]) -> list[Contrary]:
    """Boxes before pairs of their corners, exchanges before the correlations that follow from them."""
    boxes = [c for c in found if c.kind == "boxes"]
    orders = [c for c in found if c.kind == "exchanged" and c.sure and "is below" in c.seen]
    if boxes and not orders:
        return boxes
    return orders or list(found)


def _finding(group: Sequence[Shard], cut: Cut, found: Sequence[Contrary], odd: int) -> Finding:
    first = found[0]
    fields = tuple(dict.fromkeys(f.partition("[")[0] for c in found for f in c.fields))
    declared = told_by_another_field(group, cut, first.part, fields)
    at = next(i for i, m in enumerate(cut.member) if (m == first.part).any())
    whole = cut.by == ""
    rest = f"the {len(cut.names) - odd} other parts" if len(cut.names) - odd > 1 else "the other part"
    said = f"in {cut.told(first.part)} fields stand to each other otherwise than in {rest}"
    said += f": {first.seen}" + (f"; also {found[1].seen}" if len(found) > 1 else "")
    said += f". It is as the others with {' and '.join(dict.fromkeys(c.operations[0] for c in found[:3]))}"
    others = first.operations[1:]
    said += f" (or {' or '.join(others)}: the relation alone does not tell which)" if others else ""
    said += f"; {declared}" if declared else ""
    severe = Severity.INFO if declared else (
        Severity.LOW if not cut.origin else Severity.HIGH if first.sure else Severity.MEDIUM)
    return RULE.finding(
        said,
        place(group[at], fields[0]),
        group[at].name,
        bearing=Bearing.CAUSE if first.sure and len(first.operations) == 1 else Bearing.SIGN,
        severity=severe,
        measured={
            "field": fields[0], "fields": fields, "by": cut.by or "file", "part": cut.names[first.part],
            "repair": first.operations[0], "kind": "declared" if declared else first.kind,
            "shard": short(group[at]) if whole else "",
        },
    )


def _stretches(group: Sequence[Shard], x: Features, comparisons: float) -> Iterator[Finding]:
    """Of each file the stretch of rows in which two numbers that are always in one order are in the other."""
    files = [np.flatnonzero(x.shard == k) for k in range(len(group))]
    for i in range(len(x.names)):
        for j in range(i + 1, len(x.names)):
            apart = x.values[:, j] - x.values[:, i]
            share = float(np.mean(apart > 0))
            if not np.isfinite(apart).all() or not max(share, 1 - share) >= 0.8:
                continue
            below = (apart < 0 if share > 0.5 else apart > 0).astype(np.float64)
            for k, here in enumerate(files):
                found = odd_stretch(k, below[here], comparisons) if 0.0 < below[here].mean() < 0.5 else None
                if found is None or found.stretch is None:
                    continue
                inside = found.stretch.inside(len(here))
                both = x.values[here][:, [i, j]]
                if exchanged(both[inside], both[~inside]):
                    rows = x.row[here][inside]
                    yield _stretch_finding(group[k], x.names[i], x.names[j], int(rows[0]), int(rows[-1]))


def _stretch_finding(shard: Shard, one: str, other: str, first: int, last: int) -> Finding:
    field = one.partition("[")[0]
    return RULE.finding(
        f"{one} and {other} have changed places in rows {first}..{last} of {short(shard)}: which of them is larger is "
        "contrary there to the rest of the file, and each is as the other is elsewhere",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "fields": (field, other.partition("[")[0]), "by": "stretch", "rows": (first, last),
                  "repair": f"{one} and {other} exchanged", "kind": "exchanged", "shard": short(shard)},
    )
