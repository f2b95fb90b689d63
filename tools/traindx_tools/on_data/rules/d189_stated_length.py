"""A number that states how long the data of a row are disagrees in one part with where they end.

Frames, tokens, samples, seconds: in all other parts the number is the end of an array of its row (its last item, its
last place before the padding, its bytes), or one multiple of it. In the odd part another factor or another offset holds
as well: it was counted in another unit, before another cut, with or without the marks at both ends. Masks and losses
made of it cover padding, or leave out the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.data_ends import (
    AGREE,
    APART,
    BROKEN,
    FEWEST,
    KINDS,
    Apart,
    Relation,
    apart,
    ends_of,
    rows_of,
    stated_numbers,
)
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D189",
    name="stated-length",
    title="A stated length disagrees with where the data end",
    severity=Severity.HIGH,
    sees="positive numbers of a row beside the items, the last place before the padding, the bytes or the characters "
         "of its other fields, by file, split and group",
    matters="Masks, pooling and losses that use the number take padding for data, or leave the end out.",
    alike=("Arrays that were cut at their width: full rows are not counted.",
           "A part whose data end in no fixed relation to the number: nothing is said.",
           "A field that says the rate or the unit of the part: a remark."),
    confirm=("Print the number beside the end of the array for ten rows of the named part and of another.",),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "of each part, whose data end before the array does"),
        "kinds": Threshold(KINDS, "different ends", "in each part"),
        "agree": Threshold(AGREE, "share of the rows", "of every other part, and of this one by its own relation"),
        "broken": Threshold(BROKEN, "share of the rows", "of this part that the others' relation holds in, at most"),
        "apart": Threshold(APART, "times", "between both factors, where no exact offset is another one"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each stated number."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if group:
            yield from _of_group(data, group)


def _of_group(data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    rows = rows_of(group)
    numbers = list(stated_numbers(group, rows))
    ends = list(ends_of(group, rows)) if numbers else []
    cuts = list(cuts_of(group, data.labels)) if ends else []
    for name, stated in numbers:
        found = [(cut, one) for cut in cuts for of in ends if of.field != name
                 and (one := apart(name, stated, of, cut, rows)) is not None]
        if found:
            yield _finding(group, *found[0], [one.ends.field for cut, one in found[1:] if cut is found[0][0]])


def _said(relation: Relation, told: str) -> str:
    if relation.offset:
        return f"{abs(relation.offset)} {'more' if relation.offset > 0 else 'less'} than {told}"
    return told if abs(relation.factor - 1.0) < 0.02 else f"{relation.factor:.4g} times {told}"


def _finding(group: Sequence[Shard], cut: Cut, found: Apart, also: Sequence[str]) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == found.part).any())
    declared = told_by_another_field(group, cut, found.part, (found.stated, found.ends.field))
    said = (
        f"{found.stated} of {cut.told(found.part)} is {_said(found.own, found.ends.told)} in its {found.rows:,} rows; "
        f"in the {len(cut.names) - 1} other parts it is {_said(found.usual, 'that')}, which "
        f"holds in {percent(found.holds)} of the rows here"
    )
    said += f"; the same beside {', '.join(dict.fromkeys(also))}" if also else ""
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(group[at], found.stated),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={"field": found.stated, "fields": (found.stated,), "beside": found.ends.field, "by": cut.by,
                  "part": cut.names[found.part], "usual": found.usual.factor, "own": found.own.factor,
                  "offset": found.own.offset, "usual_offset": found.usual.offset, "rows": found.rows,
                  "shard": short(group[at]), "kind": "offset" if found.own.exact else "factor"},
    )
