"""In one shard, or in the held-out data, classes have other numbers than elsewhere, and a permutation undoes it.

A simple model of the other shards predicts the classes of this one. Where its labels are mapped otherwise, the model
names one class steadily where the label says another. The permutation that agrees best is found by linear assignment;
it counts where many more rows agree under it than under the labels as they are (McNemar's test, times the number of
permutations and of comparisons), and where the model is as good after it as it is on the other shards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.places import listed, of, percent, place, short
from traindx_tools.on_data.roles import label_name
from traindx_tools.on_data.significance import LEVEL, paired_tail
from traindx_tools.on_data.table import Array, View
from traindx_tools.on_data.tasks import Task
from traindx_tools.rules import Rule, Threshold

GAIN = 0.2
AS_GOOD = 0.5
MOST_KINDS = 200

RULE = Rule(
    id="D108",
    name="label-map",
    title="Classes are numbered otherwise in one shard",
    severity=Severity.HIGH,
    sees="labels of each shard, and what a simple model of the others predicts for its inputs",
    matters="The shard teaches the opposite of the others; in held-out data it makes a good model look bad.",
    alike=("Labels at random: no permutation helps.", "A harder source: the model errs, but not in one way."),
    confirm=(
        "Compare the list of classes with which the named file was made with that of its siblings.",
        "Undo the permutation in a copy and train again.",
    ),
    thresholds={
        "gain": Threshold(GAIN, "share of rows", "that agree only after the permutation"),
        "as_good": Threshold(
            AS_GOOD, "of the others' skill", "what the model must reach after it: it explains the labels"
        ),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards, labels and permutations"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and label whose map differs."""
    for data in view.sets:
        for task in data.tasks:
            if len(task.kinds) <= MOST_KINDS:
                for i in range(len(task.parts)):
                    yield from _of_part(task, i, view.comparisons)


def _of_part(task: Task, i: int, comparisons: int) -> Iterator[Finding]:
    scores, part = task.scores[i], task.parts[i]
    others = task.others(i)
    if scores is None or not others or len(part.y) < 30:
        return
    named = scores.argmax(axis=1)
    kinds = len(task.kinds)
    confusion = np.zeros((kinds, kinds))
    np.add.at(confusion, (part.y, named), 1.0)
    best = assigned(-confusion - 0.5 * np.eye(kinds))
    seen = np.unique(part.y)
    moved = [int(k) for k in seen if best[k] != k and confusion[k, best[k]] >= 5]
    after, before = best[part.y] == named, part.y == named
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    ways = math.lgamma(len(seen) + 1)
    p = paired_tail(gained, lost)
    if (
        len(moved) < 2
        or gained - lost < GAIN * len(part.y)
        or math.log(max(p, 1e-300)) + ways + math.log(comparisons) > math.log(LEVEL)
    ):
        return
    skill = (float(after.mean()) - task.chance[i]) / max(1e-9, 1.0 - task.chance[i])
    typical = [task.skill(j) for j in others]
    if (
        skill < AS_GOOD * float(np.median(typical))
        or skill < 0.2
        or (float(np.median(typical)) < 0.2 and len(others) > 1)
    ):
        return
    if _others_as_odd(task, others):
        return
    yield _finding(task, i, moved, best, float(before.mean()), float(after.mean()), p)


def _others_as_odd(task: Task, others: list[int]) -> bool:
    """Whether the shards on which the model rests are at odds with each other: then none is the odd one."""
    if len(others) < 2:
        return False
    return float(np.median([task.skill(j) for j in others])) < 0.1


def _finding(task: Task, i: int, moved: list[int], best: Array, before: float, after: float, p: float) -> Finding:
    shard = task.parts[i].shard
    names = [f"{_name(task, k)} for {_name(task, int(best[k]))}" for k in moved]
    split = shard.split not in ("", "train") and any(task.parts[j].shard.split == "train" for j in task.others(i))
    shift = {(k - int(best[k])) % len(task.kinds) for k in moved}
    how = (
        f"shifted by {shift.pop()}"
        if len(shift) == 1 and len(moved) >= len(task.kinds) - 1 and len(moved) > 2
        else "permuted"
    )
    return RULE.finding(
        f"{of(task.field, shard)} is {how} against {'the training data' if split else 'its siblings'}: it says "
        f"{listed(names)}; a simple model of the others agrees with {percent(before)} of its labels as they are "
        "and with "
        f"{percent(after)} after undoing that",
        place(shard, task.field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": task.field,
            "before": before,
            "after": after,
            "p": p,
            "how": how,
            "map": tuple((_name(task, k), _name(task, int(best[k]))) for k in moved[:20]),
            "kind": "split" if split else "shard",
            "shard": short(shard),
        },
    )


def _name(task: Task, kind: int) -> str:
    name = label_name(task.data, task.field, task.kinds[kind])
    return f"values from {name}" if task.binned else name
