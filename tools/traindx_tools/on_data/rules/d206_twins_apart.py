"""Rows are one another with two sides exchanged, a sign turned or a picture mirrored, and a field stays behind.

Games told from either side, pictures beside their mirror images, interactions in both directions: the label of such a
twin is the same, its complement or its negative, by what the label means, and always the same of these. In one part it
is another one: there the rows were rearranged and the label was not, or the reverse, and two equal inputs ask for
contrary outputs. The rearrangement is found from the values, not from names (`row_twins.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import place, rows
from traindx_tools.on_data.roles import is_target
from traindx_tools.on_data.row_twins import FEWEST, Twins, twins_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.twin_relations import BROKEN, DENSE, EACH, HOLDS, Broken, broken_relations
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D206",
    name="twins-apart",
    title="Rows were rearranged in one part, and a field that belongs to them was not",
    severity=Severity.HIGH,
    sees="rows that are another row with columns exchanged, signs turned, or an array mirrored, turned or reversed, "
         "and how each other field of both stands to the other",
    matters="The label of these rows is that of the row they were made from: equal inputs ask for contrary outputs.",
    alike=("A field that stays in all parts, or turns in all.", "Fields that are independent of the rearrangement.",
           "Rows that are alike by chance: they are as many once a column is shuffled."),
    confirm=("Print one pair of twins of this part and one of another part.",),
    thresholds={
        "fewest": Threshold(FEWEST, "pairs", "of twins that one rearrangement makes"),
        "each": Threshold(EACH, "pairs", "of a part"),
        "holds": Threshold(HOLDS, "share of the pairs of all other parts", "that stand to each other in one way"),
        "broken": Threshold(BROKEN, "share of the pairs of the odd part", "that do so at most"),
        "dense": Threshold(DENSE, "share of the pairs of a stretch", "that do not"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each field of a set that is not rearranged along with its row."""
    for data in view.sets:
        group = [s for s in data.shards if s.columns and s.rows]
        for twins in twins_of(data):
            found = list(broken_relations(group, twins, data.labels))
            for one in sorted(found, key=lambda b: not is_target(b.field))[:3]:
                yield _finding(group, twins, one)


def _finding(group: Sequence[Shard], twins: Twins, found: Broken) -> Finding:
    shard = group[found.shard]
    before = sum(s.rows for s in group[: found.shard])
    own = found.broken[(found.broken >= before) & (found.broken < before + shard.rows)] - before
    return RULE.finding(
        f"{found.field} does not go along with its rows in {found.part}: of {found.pairs + found.others:,} pairs of "
        f"rows that are one another with {twins.operation}, {found.field} is {found.usual} in the {found.others:,} "
        f"others, and in {len(found.broken):,} of the {found.pairs:,} there it is not ({found.here} instead): equal "
        f"inputs with contrary values: {rows(shard, own)}",
        place(shard, found.field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": found.field, "operation": twins.operation, "usual": found.usual, "here": found.here,
                  "part": found.part, "pairs": found.pairs, "broken": len(found.broken), "others": found.others,
                  "rows": tuple(int(i) for i in np.asarray(own[:20])), "kind": "twins", "shard": shard.name},
    )
