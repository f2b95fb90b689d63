"""The labels of one shard contradict its inputs where those of the others do not.

A simple model of the other shards is sure of many rows and nearly always right; in one shard the labels of many such
rows are others. A harder source leaves the model unsure instead. A few wrong labels everywhere are normal and are not
told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import of, percent, place, rows, short
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.tasks import Task, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

WRONG = 0.1
TIMES = 4.0
SKILL = 0.3
FEWEST = 100
SURE = 0.6
ALIKE = 1.2

RULE = Rule(
    id="D112",
    name="label-noise",
    title="The labels of one shard contradict its inputs",
    severity=Severity.MEDIUM,
    sees="labels of rows of which a simple model of the other shards is sure",
    matters="Wrong labels bound what can be learned, and a large model learns them by heart.",
    alike=("A harder source: the model is unsure of its rows.", "Another label map: steadily wrong, see D108."),
    confirm=("Look at the named rows by eye.", "Train without the shard."),
    thresholds={
        "wrong": Threshold(WRONG, "share of sure rows", "less is common"),
        "times": Threshold(TIMES, "times the worst sibling", "a shard must stand out"),
        "sure": Threshold(
            SURE, "margin of one-hot regression", "above a half the first class beats all others together"
        ),
        "alike": Threshold(ALIKE, "ratio of mean squared features", "beyond that the inputs are of another source"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards and labels"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard that stands out."""
    for data in view.sets:
        for task in tasks_of(data):
            if not task.binned and len(task.parts) >= 4:
                yield from _of_task(task, view.comparisons)


def _sure(scores: Array) -> Array:
    two = np.sort(scores, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0] > SURE)


def _steady(labels: Array, named: Array) -> bool:
    """Whether each label is contradicted in one way: a map of its own (D108), no noise."""
    ways = [np.bincount(named[labels == k]).max() for k in np.unique(labels)]
    return len(np.unique(named)) > 1 and sum(map(int, ways)) > 0.8 * len(labels)


def _of_task(task: Task, comparisons: int) -> Iterator[Finding]:
    judged: list[tuple[int, Array, int]] = []
    for i, (part, scores) in enumerate(zip(task.parts, task.scores, strict=True)):
        if scores is None or len(part.y) < FEWEST or not task.others(i):
            continue
        sure = _sure(scores)
        named = scores.argmax(axis=1)
        wrong = np.flatnonzero(sure & (named != part.y))
        if sure.sum() >= 30 and not _steady(part.y[wrong], named[wrong]):
            judged.append((i, wrong, int(sure.sum())))
    if len(judged) < 4:
        return
    shares = np.array([len(w) / n for _, w, n in judged])
    for place_in, (i, wrong, sure_rows) in enumerate(judged):
        rest = float(np.delete(shares, place_in).max())
        p = share_tail(len(wrong), sure_rows, max(rest * TIMES, 0.02)) * comparisons
        if (
            shares[place_in] >= WRONG
            and p < LEVEL
            and task.skill(i) > LOW
            and min(task.skill(j) for j in task.others(i)) >= SKILL
            and _same_inputs(task, i)
        ):
            yield _finding(task, i, wrong, float(shares[place_in]), rest, p)


LOW = 0.1
"""Below that the labels belong to other rows altogether, which D109 tells."""


def _same_inputs(task: Task, i: int) -> bool:
    """Whether the shard's inputs spread as those of its siblings do: those of a harder source do not."""
    energy = [float((p.x[:, :-1] ** 2).sum(axis=1).mean()) for p in task.parts]
    typical = float(np.median([energy[j] for j in task.others(i)]))
    return 1 / ALIKE < energy[i] / max(typical, 1e-12) < ALIKE


def _finding(task: Task, i: int, wrong: Array, share: float, rest: float, p: float) -> Finding:
    part = task.parts[i]
    where = part.index[wrong]
    return RULE.finding(
        f"{of(task.field, part.shard)} contradicts {percent(share)} of the rows of which a simple model of the "
        "other shards "
        f"is sure; in them it is at most {percent(rest)}: {rows(part.shard, where)}",
        place(part.shard, task.field),
        part.shard.name,
        bearing=Bearing.SIGN,
        measured={
            "field": task.field,
            "share": share,
            "siblings": rest,
            "p": p,
            "shard": short(part.shard),
            "rows": tuple(int(r) for r in where[:20]),
        },
    )
