"""A number does not go along with its row in one part: it runs against it, was moved by some rows, or is of other rows.

What texts, sequences, arrays and numbers of a row say of a score or a measurement agrees with it everywhere else
(`number_targets.py`). A rater who gives 1 for the best, a plate whose wells were read in another order, a column that
was joined by place after rows were dropped: average errors hide all of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cuts import cuts_of, told_by_another_field
from traindx_tools.on_data.number_targets import predicted
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.target_parts import AGAINST, AGREES, FEWEST, LOST, MOVED, OWN, VARIES, Apart, parts_apart
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_TOLD = 2

RULE = Rule(
    id="D208",
    name="target-apart",
    title="In one part a number does not go along with its row",
    severity=Severity.HIGH,
    sees="what a simple model of the other rows says of a number, from texts, sequences, arrays, kinds and numbers "
         "beside it, against the number, by file, group and stretch of rows",
    matters="These rows teach the contrary, or nothing; averages over all rows hide it.",
    alike=("A part with a relation of its own: a model of its own rows finds it.", "Parts that differ all.",
           "Inputs that tell less there.", "A part that a field declares: a remark."),
    confirm=("Plot the number against the prediction, the part in another colour.",),
    thresholds={
        "fewest": Threshold(FEWEST, "rows", "of a part"),
        "agrees": Threshold(AGREES, "correlation", "of both in the typical part"),
        "against": Threshold(AGAINST, "of that", "in a part that runs against its rows, at most"),
        "lost": Threshold(LOST, "of that", "in a part that was moved or lost, at most"),
        "moved": Threshold(MOVED, "of that", "after a move by some rows, at least"),
        "varies": Threshold(VARIES, "of the usual spread", "of what the rows of a lost part say"),
        "own": Threshold(OWN, "of the usual correlation", "of a model of a lost part's own rows, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts and numbers"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """The surest parts of each set."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if group and all(s.numbers is None for s in group):
            found = [a for p in predicted(group, data.fields)
                     for a in parts_apart(p, [c for c in cuts_of(group, data.labels) if c.by != p.field],
                                          float(view.comparisons))]
            for one in sorted(found, key=lambda a: a.log_chance)[:MOST_TOLD]:
                yield _finding(data, group, one)


def _finding(data: DataSet, group: Sequence[Shard], found: Apart) -> Finding:
    at, declared, rows = found.index, "", (0, 0)
    if found.cut is not None:
        at = next(i for i, m in enumerate(found.cut.member) if (m == found.part).any())
        own = np.flatnonzero(found.cut.member[at] == found.part)
        where, rows = found.cut.told(found.part), (int(own[0]), int(own[-1]))
        declared = told_by_another_field(group, found.cut, found.part, (found.field,))
    elif found.stretch is not None:
        rows = (found.stretch.start, found.stretch.end - 1)
        where = f"rows {rows[0]}..{rows[1]} of {short(group[at])}"
    said = {
        "against": f"runs against its rows in {where}: high where what the rows say is low, and the reverse, as if "
                   "scored the other way round",
        "moved": f"is moved by {abs(found.lag)} row{'s' * (abs(found.lag) != 1)} in {where} (its numbers stand too "
                 f"{'late' if found.lag > 0 else 'early'}, or are rolled by as many)",
        "lost": f"does not belong to its rows in {where}: neither they nor a model of them alone say anything of it "
                "(shuffled, or of other rows)",
    }[found.kind]
    after = f", {found.after:.2f} once moved back" if found.kind == "moved" else ""
    return RULE.finding(
        f"{found.field} {said}; correlation with what the other fields of a row say {found.here:.2f} there{after}, "
        f"{found.others:.2f} elsewhere" + (f"; {declared}" if declared else ""),
        place(group[at], found.field),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={"field": found.field, "kind": found.kind, "here": found.here, "others": found.others,
                  "lag": found.lag, "after": found.after, "log_p": found.log_chance, "rows": rows,
                  "by": found.cut.by if found.cut is not None else "", "shard": short(group[at]),
                  "part": found.cut.names[found.part] if found.cut is not None else ""},
    )
