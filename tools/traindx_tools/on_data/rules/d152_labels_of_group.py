"""The labels of one group of rows (a batch, an annotator, a site) do not belong to their inputs.

A simple model predicts the labels of all other groups and is as sure of this one's inputs; its labels agree with the
model as a guess does, or after classes are exchanged, or after they are moved by a row. Rows of a group need not be
neighbours: averages over files and places hide such a group.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cuts import told_by_another_field
from traindx_tools.on_data.group_pairing import (
    FEW,
    FEWEST,
    LOST,
    OWN,
    SKILL,
    Lost,
    lost_groups,
    names_of,
)
from traindx_tools.on_data.label_maps import AS_GOOD
from traindx_tools.on_data.label_stretches import AS_SURE
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.tasks import Task, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_KINDS = 100

RULE = Rule(
    id="D152",
    name="labels-of-group",
    title="The labels of one group of rows are off",
    severity=Severity.HIGH,
    sees="what a simple model predicts of the labels of each batch, annotator, device or site",
    matters="These labels teach the wrong thing; spread over all files, they look like noise.",
    alike=(
        "A harder group: the model is less sure of its inputs.",
        "A group with a relation of its own: a model of its own rows predicts its labels.",
        "A group of one class: its inputs are of that class too.",
    ),
    confirm=("Look at ten rows of the group beside ten others with the same label.", "Leave the group out and train."),
    thresholds={
        "skill": Threshold(SKILL, "of the way from guessing to perfect", "that the model reaches in the typical group"),
        "lost": Threshold(LOST, "of the same way", "at most, in the group as it is"),
        "as_good": Threshold(AS_GOOD, "of the typical skill", "after exchanging classes or moving labels"),
        "as_sure": Threshold(AS_SURE, "of the median margin outside", "below, the group is a harder one"),
        "own": Threshold(OWN, "of the typical skill", "that a model of the group's own rows has: another relation"),
        "few": Threshold(FEW, "groups", "one of which may be off; where more are, groups are of different kinds"),
        "rows": Threshold(FEWEST, "rows", "of a group"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all groups, labels and exchanges"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each group and label."""
    for data in view.sets:
        for task in tasks_of(data):
            if len(task.kinds) <= MOST_KINDS:
                told: set[tuple[int, ...]] = set()
                for found in lost_groups(task, view.comparisons):
                    rows = tuple(int((m == found.part).sum()) for m in found.cut.member)
                    if rows not in told:  # an annotator works at one site: told once
                        told.add(rows)
                        yield _finding(task, found)


def _finding(task: Task, found: Lost) -> Finding:
    group = [p.shard for p in task.parts]
    at = next(i for i, m in enumerate(found.cut.member) if (m == found.part).any())
    declared = told_by_another_field(group, found.cut, found.part, [task.field])
    if found.kind == "mapped":
        pairs = [f"{a} for {b}" for a, b in ((names_of(task, [k])[0], names_of(task, [v])[0]) for k, v in found.moved)]
        how = f"classes are exchanged: they say {listed(pairs)}"
    elif found.kind == "constant":
        how = f"nearly all are {names_of(task, [found.label])[0]}, and the inputs are as elsewhere"
    elif found.kind == "shifted":
        how = (f"they are off by {abs(found.lag)} of its rows ({'late' if found.lag < 0 else 'early'}): moved back "
               "they agree")
    else:
        how = "no exchange and no shift makes them agree, and a model of these rows alone predicts them no better"
    said = (
        f"{task.field} of {found.cut.told(found.part)} does not belong to its inputs: a simple model agrees with "
        f"{percent(found.here)} of its labels, and with {percent(found.elsewhere)} of those of the "
        f"{len(found.cut.names) - 1} other groups; {how}"
    )
    said += f"; {declared}" if declared else ""
    first = int(np.flatnonzero(found.cut.member[at] == found.part)[0])
    return RULE.finding(
        said,
        place(group[at], task.field),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None if found.cut.origin else Severity.MEDIUM,
        measured={
            "field": task.field, "by": found.cut.by, "part": found.cut.names[found.part], "first": first,
            "here": found.here, "elsewhere": found.elsewhere, "log_p": found.log_chance, "shard": short(group[at]),
            "moved": len(found.moved), "lag": found.lag, "kind": f"group-{found.kind}",
        },
    )
