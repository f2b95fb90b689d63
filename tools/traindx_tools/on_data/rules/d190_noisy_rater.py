"""The labels of one annotator, site or device are partly drawn at random.

Its labels follow the inputs, but less often than those of all others do at the same sureness of a model: somebody
guessed a part of them, or a form was filled in without a look. Two classes that stand for each other in most of the
misses are named. Where nothing of the labels belongs to the inputs, D152 tells it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cuts import Cut, by_field, told_by_another_field
from traindx_tools.on_data.picture_features import shown_by
from traindx_tools.on_data.places import number, percent, place, short
from traindx_tools.on_data.rater_noise import (
    AS_SURE,
    GROUPS,
    OWN,
    ROWS,
    SHORT,
    SKILL,
    TIMES,
    Noisy,
    Rows,
    labels_of,
    noisy_group,
    rows_of,
)
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_TOTAL = 500_000
"""Rows of a set."""

RULE = Rule(
    id="D190",
    name="noisy-rater",
    title="The labels of one group are partly random",
    severity=Severity.MEDIUM,
    sees="how often a simple model of the other groups (words of texts, numbers, short arrays, pictures) is right "
         "about the labels of each annotator, site or device, against what it should be at the same sureness",
    matters="These rows teach noise and blur the metric; leaving them out, or weighting them, costs nothing else.",
    alike=("A harder group: the model is less sure of it, or right as often as it is elsewhere at that sureness.",
           "A rater with a standard of his own: a model of his own rows is as good as those of the others.",
           "Groups that all differ: none stands out."),
    confirm=("Have fifty rows of the group labelled again by somebody else.", "Leave the group out and train."),
    thresholds={
        "rows": Threshold(ROWS, "rows", "of a group"),
        "groups": Threshold(GROUPS, "groups", "of that size"),
        "skill": Threshold(SKILL, "of the way from guessing to perfect", "of the model in the typical group"),
        "short": Threshold(SHORT, "share of the rows", "by which the group falls short of what it should be"),
        "times": Threshold(TIMES, "times", "as far as any other group"),
        "own": Threshold(OWN, "of the others'", "skill of a model of the group's own rows: more is another standard"),
        "as_sure": Threshold(AS_SURE, "of the usual sureness", "below, the inputs of the group are others"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all groups, fields and labels"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each label and field of groups; of several fields that name one group the first."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if group and sum(s.rows for s in group) <= MOST_TOTAL:
            for label in labels_of(group, data.labels):
                yield from _of_label(view, data, group, label)


def _of_label(view: View, data: DataSet, group: Sequence[Shard], label: str) -> Iterator[Finding]:
    cuts = [c for c in by_field(group, data.labels) if c.by != label]
    told: set[tuple[int, ...]] = set()
    origins = frozenset(c.by for c in cuts if c.origin)
    made: dict[frozenset[str], Rows | None] = {}
    shown = shown_by(group, [s for d in view.sets for s in d.shards], view.listings) if cuts else None
    for cut in cuts:
        without = origins | {cut.by}
        if without not in made:
            made[without] = rows_of(group, label, without, 3 * len(cuts), shown)
        rows = made[without]
        found = noisy_group(rows, cut, float(len(cuts) * 3)) if rows is not None else None
        if rows is None or found is None:
            continue
        which = tuple(int((m == found.part).sum()) for m in cut.member)
        if which not in told:  # an annotator works at one site: told once
            told.add(which)
            yield _finding(group, label, cut, found, rows)


def _how(found: Noisy, rows: Rows) -> str:
    """Which classes stand for each other, or how much of the labels is as if drawn at random."""
    own = (f"(skill of a model of the group's own rows {number(found.own)}, in the other groups "
           f"{number(found.others_own)})")
    if found.confused is not None:
        a, b = (rows.names[k] for k in found.confused)
        return f"most of the misses are {a} and {b}, which stand for each other there {own}"
    return (f"as if {percent(found.share)} of the labels were drawn at random: a model of the group's own rows is no "
            f"better {own}")


def _finding(group: Sequence[Shard], label: str, cut: Cut, found: Noisy, rows: Rows) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == found.part).any())
    declared = told_by_another_field(group, cut, found.part, (label,))
    count = sum(int((m == found.part).sum()) for m in cut.member)
    said = (
        f"{label} of {cut.told(found.part)} ({count:,} rows) follows the inputs less than that of the "
        f"{len(cut.names) - 1} other groups: a simple model of the others is right in {percent(found.here)} of these "
        f"rows, where it should be in {percent(found.expected)} at its sureness; {_how(found, rows)}"
    )
    said += f"; {declared}" if declared else ""
    first = int(np.flatnonzero(cut.member[at] == found.part)[0])
    return RULE.finding(
        said,
        place(group[at], label),
        group[at].name,
        bearing=Bearing.SIGN,
        title="Two classes of one group stand for each other" if found.confused else None,
        severity=Severity.INFO if declared else None if cut.origin else Severity.LOW,
        measured={"field": label, "by": cut.by, "part": cut.names[found.part], "here": found.here,
                  "expected": found.expected, "share": found.share, "log_p": found.log_chance, "first": first,
                  "confused": tuple(rows.names[k] for k in found.confused or ()),
                  "rows_of_group": count, "shard": short(group[at]), "kind": "noise"},
    )
