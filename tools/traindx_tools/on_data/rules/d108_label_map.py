"""In one shard, or in the held-out data, classes have other numbers than elsewhere, and a permutation undoes it.

A simple model of the other shards predicts the classes of this one. Where its labels are mapped otherwise, the model
names one class steadily where the label says another. The permutation that agrees best is found by linear assignment;
it counts where many more rows agree under it than under the labels as they are (McNemar's test, times the number of
permutations and of comparisons), and where the model is as good after it as it is on the other shards.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.inputs_apart import inputs_apart
from traindx_tools.on_data.label_maps import AS_GOOD, GAIN, LabelMap, label_map
from traindx_tools.on_data.places import listed, of, percent, place, short
from traindx_tools.on_data.roles import label_name
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.tasks import Task, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_KINDS = 200
WHOLLY = 0.9
"""Of the labels that the model names elsewhere, from which on a permutation explains all, whatever else is odd."""

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
        "gain": Threshold(GAIN, "share of rows", "of the moved labels that agree only after the permutation"),
        "as_good": Threshold(
            AS_GOOD, "of the others' skill", "what the model must reach after it: it explains the labels"
        ),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards, labels and permutations"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and label whose map differs."""
    for data in view.sets:
        for task in tasks_of(data):
            if len(task.kinds) <= MOST_KINDS:
                for i in range(len(task.parts)):
                    found = label_map(task, i, view.comparisons)
                    if found is not None and not _changed(task, i, found):
                        yield _finding(task, i, found)


def _changed(task: Task, i: int, found: LabelMap) -> bool:
    """Whether the inputs of the part are of another kind, and the permutation leaves more than is usual elsewhere."""
    typical = float(np.median([task.accuracy[j] for j in task.others(i)]))
    if found.after >= WHOLLY * typical:
        return False
    others = [task.parts[j] for j in task.others(i)]
    parts = [*others, task.parts[i]]
    classes = np.concatenate([*(p.y for p in others), np.asarray(found.best)[task.parts[i].y]])
    places = np.split(np.arange(len(classes)), np.cumsum([len(p.y) for p in parts])[:-1])
    return inputs_apart(np.concatenate([p.x for p in parts]), classes, places, len(others))


def _finding(task: Task, i: int, found: LabelMap) -> Finding:
    moved, best, before, after, p = found.moved, found.best, found.before, found.after, found.p
    shard = task.parts[i].shard
    names = [f"{_name(task, k)} for {_name(task, int(best[k]))}" for k in moved]
    split = shard.split not in ("", "train") and any(task.parts[j].shard.split == "train" for j in task.others(i))
    shift = {(k - int(best[k])) % len(task.kinds) for k in moved}
    how = (
        f"shifted by {shift.pop()}"
        if len(shift) == 1 and len(moved) >= len(task.kinds) - 1 and len(moved) > 2
        else "permuted"
    )
    by = _counted_from(task, found)
    how = "shifted" if by else how
    told = f"{abs(by)} {'less' if by < 0 else 'more'}, as if it counted from another number," if by else how
    return RULE.finding(
        f"{of(task.field, shard)} is {told} against {'the training data' if split else 'its siblings'}: it says "
        f"{listed(names)}; a simple model of the others agrees with {percent(before)} of its labels as they are "
        "and with "
        f"{percent(after)} after undoing that",
        place(shard, task.field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": task.field,
            "inputs": tuple(task.inputs[:20]),
            "before": before,
            "after": after,
            "p": p,
            "undone": found.undone,
            "how": how,
            "shift": by,
            "map": tuple((_name(task, k), _name(task, int(best[k]))) for k in moved[:20]),
            "kind": "split" if split else "shard",
            "shard": short(shard),
        },
    )


def _counted_from(task: Task, found: LabelMap) -> int:
    """By how much all moved labels are higher as numbers, 0 where they are not all by the same, or go round."""
    if task.binned or task.kinds.dtype.kind not in "iu" or len(found.moved) < 2:
        return 0
    by = {int(task.kinds[k]) - int(task.kinds[int(found.best[k])]) for k in found.moved}
    return by.pop() if len(by) == 1 else 0


def _name(task: Task, kind: int) -> str:
    name = label_name(task.data.shards, task.field, task.kinds[kind])
    return f"values from {name}" if task.binned else name
