"""Texts of one part are cut at one length, in the middle of what they say; all others go on.

What stands at the end of a text (the request, the answer, the verdict) is lost in that part alone, and the labels,
which were given to the whole text, cannot be told there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cut_texts import BEGINNINGS, ELSEWHERE, ENDS, FEWEST, LONGER, PILED, CutTexts, cut_texts
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D222",
    name="texts-cut",
    title="Texts of one part are cut at one length",
    severity=Severity.HIGH,
    sees="lengths of texts in characters and bytes, what they begin and end with, by file, split, group and stretch",
    matters="What stands at the end of the texts is missing there: no model can tell from the rest what was asked.",
    alike=("All texts cut alike, as a limit of the model asks: nothing is said.",
           "Short texts of another source: they have no one length, and end as texts do.",
           "A running text in blocks: its blocks begin in the middle as well."),
    confirm=("Read the last words of ten rows of the named length, and look for the whole text at its source.",),
    thresholds={
        "rows": Threshold(FEWEST, "texts", "of exactly the greatest length of the part"),
        "piled": Threshold(PILED, "share of the part's texts", "the same"),
        "elsewhere": Threshold(ELSEWHERE, "share of all other texts", "of that length, at most"),
        "longer": Threshold(LONGER, "share of all other texts", "that are longer"),
        "ends": Threshold(ENDS, "total variation distance", "of their last characters to those of all others"),
        "beginnings": Threshold(BEGINNINGS, "total variation distance", "of their first characters, at most"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each field of texts."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        for found in cut_texts(group, data.labels) if group else ():
            yield _finding(group, found)


def _finding(group: Sequence[Shard], found: CutTexts) -> Finding:
    shard, (_, row) = group[found.first[0]], found.first
    starts = sum(s.rows for s in group[: found.first[0]])
    mine = found.inside[starts: starts + shard.rows].nonzero()[0]
    return RULE.finding(
        f"{found.field} of {found.part} is cut at {found.length} {found.unit}: {found.cut:,} of {found.inside.sum():,} "
        f"texts there have exactly that length, from row {row} of {short(shard)} on, none is longer, and elsewhere "
        f"they have up to {found.longest:,}; {percent(found.ends)} of the cut ones end otherwise than texts do, in the "
        "middle of a word or a sentence",
        place(shard, found.field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": found.field, "fields": (found.field,), "length": found.length, "unit": found.unit,
                  "part": found.part, "count": found.cut, "ends": found.ends, "kind": "cut", "shard": short(shard),
                  "rows": (int(mine[0]), int(mine[-1]))},
    )
