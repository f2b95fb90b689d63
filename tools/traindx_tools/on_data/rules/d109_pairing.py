"""Labels do not belong to their inputs: in one shard, or after a shift by a few rows they do.

A simple model of the other shards (of the other rows, where there is one shard) predicts the labels. Where it is at
chance in one shard and well above it in every other, the labels of that shard were shuffled or shifted. Where the
labels of the row before or behind are predicted and those of the row itself are not, they are off by so many rows.

Where a model of the shard's own rows does predict its labels, they belong together, but otherwise than elsewhere:
inputs that were turned, negated or reordered, or labels of another kind.

A set whose labels no simple model predicts is a remark: relations may be too intricate for it. It is made of the field
that is called as targets are, or of the only label, and not of every column of a table that has few values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.label_maps import label_map
from traindx_tools.on_data.places import of, percent, place, short
from traindx_tools.on_data.roles import is_target
from traindx_tools.on_data.significance import LEVEL, paired_tail, share_bound, share_tail
from traindx_tools.on_data.tasks import Task, folded, folded_all, in_order, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

LAGS = (-3, -2, -1, 1, 2, 3)
PACES = (0.5, 2 / 3, 0.75, 0.8, 1.25, 4 / 3, 1.5, 2.0, 3.0, 1 / 3)
"""Ratios of the lengths of windows in use: 30 s and 20 s, 10 s and 15 s, 25 and 20 ms, twice as many."""
SKILL = 0.3
LOST = 0.1
OWN = 0.5
FEWEST = 100
ONE_LABEL = 0.95
"""Share of one label in a shard from which its rows say nothing of their pairing."""

RULE = Rule(
    id="D109",
    name="pairing",
    title="Labels do not belong to their inputs",
    severity=Severity.HIGH,
    sees="what a simple model predicts of labels, as they are and shifted by up to three rows",
    matters="Such labels teach nothing; a shard of them is noise among the others.",
    alike=(
        "A harder source: worse, and still above chance.",
        "Series: their neighbours are alike, so a shift helps little.",
        "A relation that no simple model sees.",
    ),
    confirm=("Look at ten pairs of the named shard by eye.",),
    thresholds={
        "skill": Threshold(
            SKILL, "of the way from chance to perfect", "that the model must reach elsewhere or after a shift"
        ),
        "lost": Threshold(LOST, "of the way from chance to perfect", "below that it is at chance"),
        "own": Threshold(OWN, "of the others' skill", "of a model of the shard's own rows: they do belong together"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards, labels and shifts"),
    },
)


@dataclass(frozen=True)
class Shift:
    """Labels fit the inputs after moving them by `lag` rows. `skill`: of the way from chance to perfect."""

    lag: int
    skill: float
    p: float
    undone: float = 0.0
    """Lower bound of the share of rows that fit only after it."""


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard whose pairing is lost, or for a whole set."""
    for data in view.sets:
        for task in tasks_of(data):
            alone = [i for i in range(len(task.parts)) if not task.others(i)]
            for i in range(len(task.parts)):
                if len(task.parts[i].y) >= FEWEST:
                    yield from (
                        _whole(task, i, view.comparisons) if i in alone else _of_shard(task, i, view.comparisons)
                    )


def _shift(task: Task, i: int, scores_of: dict[int, Array], comparisons: int) -> Shift | None:
    """The shift after which most labels fit, where that is more than chance. `scores_of`: scores for each lag."""
    y = task.parts[i].y
    hits = scores_of[0].argmax(axis=1) == y
    best: Shift | None = None
    for lag in LAGS:
        moved = np.roll(y, lag)
        fits = scores_of[lag].argmax(axis=1) == moved
        skill = (float(fits.mean()) - task.chance[i]) / max(1e-9, 1.0 - task.chance[i])
        gained, lost = int((fits & ~hits).sum()), int((hits & ~fits).sum())
        p = paired_tail(gained, lost) * len(LAGS) * comparisons
        if p < LEVEL and skill >= SKILL and (best is None or skill > best.skill):
            best = Shift(lag, skill, p, share_bound(gained - lost, len(y)))
    return best


def _of_shard(task: Task, i: int, comparisons: int) -> Iterator[Finding]:
    part, scores = task.parts[i], task.scores[i]
    others = [j for j in task.others(i) if len(task.parts[j].y) >= FEWEST]
    if scores is None or len(others) < 2 or task.skill(i) > LOST or task.chance[i] >= ONE_LABEL:
        return
    typical = [task.skill(j) for j in others]
    usual = float(np.median([task.chance[j] for j in others]))
    if min(typical) < 3 * LOST or float(np.median(typical)) < SKILL or task.chance[i] > 1.5 * usual:
        return  # also where the shard has another mix of labels, which is told as that
    hits = int((scores.argmax(axis=1) == part.y).sum())
    expected = task.chance[i] + float(np.median(typical)) * (1 - task.chance[i]) / 2
    p = share_tail(len(part.y) - hits, len(part.y), 1.0 - min(0.99, expected)) * comparisons
    if p > LEVEL or label_map(task, i, comparisons) is not None:
        return
    own = _own_skill(task, i)
    if own >= OWN * float(np.median(typical)):
        yield _other_relation(task, i, own, p)
        return
    ordered = in_order(part)
    shift = _shift(task, i, dict.fromkeys((0, *LAGS), scores), comparisons) if ordered else None
    pace = _pace(task, i, scores, comparisons) if ordered and shift is None else None
    rest = (
        f"; in the other {len(others)} it agrees with {percent(float(np.median([task.accuracy[j] for j in others])))}"
    )
    yield _finding(
        task,
        i,
        shift,
        p,
        f"a simple model of the others agrees with {percent(task.accuracy[i])} of its labels "
        f"(guessing: {percent(task.chance[i])}){rest}",
        pace,
    )


def _pace(task: Task, i: int, scores: Array, comparisons: int) -> tuple[float, float] | None:
    """How many labels there are for each row of inputs, and the skill then: windows of 20 s beside those of 30 s."""
    y = task.parts[i].y
    hits = scores.argmax(axis=1) == y
    best: tuple[float, float] | None = None
    for pace in PACES:
        at = np.floor((np.arange(len(y)) + 0.5) * pace).astype(np.int64)
        there = np.flatnonzero(at < len(y))
        fits = scores[there].argmax(axis=1) == y[at[there]]
        skill = (float(fits.mean()) - task.chance[i]) / max(1e-9, 1.0 - task.chance[i])
        p = paired_tail(int((fits & ~hits[there]).sum()), int((hits[there] & ~fits).sum())) * len(PACES) * comparisons
        if p < LEVEL and skill >= SKILL and len(there) >= FEWEST // 2 and (best is None or skill > best[1]):
            best = pace, skill
    return best


def _own_skill(task: Task, i: int) -> float:
    """How well a model of the shard's own rows predicts its labels: of the way from chance to perfect."""
    part = task.parts[i]
    hits = float((folded(part, part.y, len(task.kinds)).argmax(axis=1) == part.y).mean())
    return (hits - task.chance[i]) / max(1e-9, 1.0 - task.chance[i])


def _other_relation(task: Task, i: int, own: float, p: float) -> Finding:
    """Inputs and labels belong together, and otherwise than in the siblings: one of them was transformed."""
    shard = task.parts[i].shard
    return RULE.finding(
        f"{task.field} follows from {', '.join(task.inputs[:3])} otherwise in {short(shard)} than in its siblings: a "
        f"simple model of the others agrees with {percent(task.accuracy[i])} of its labels (guessing: "
        f"{percent(task.chance[i])}), one of its own rows goes {percent(own)} of the way from guessing to perfect; "
        "its inputs or its labels were transformed",
        place(shard, task.field),
        shard.name,
        bearing=Bearing.SIGN,
        title="Inputs and labels belong together otherwise in one shard",
        measured={
            "field": task.field,
            "inputs": tuple(task.inputs[:20]),
            "p": p,
            "accuracy": task.accuracy[i],
            "own": own,
            "kind": "other-relation",
            "shard": short(shard),
        },
    )


def _whole(task: Task, i: int, comparisons: int) -> Iterator[Finding]:
    part = task.parts[i]
    if task.scores[i] is None or not in_order(part) or task.skill(i) > LOST:
        return
    kinds = len(task.kinds)
    moved = folded_all(part, [np.roll(part.y, lag) for lag in LAGS], kinds)
    by_lag = {0: task.scores[i], **dict(zip(LAGS, moved, strict=True))}
    shift = _shift(task, i, by_lag, comparisons)  # type: ignore[arg-type]
    if shift is not None:
        yield _finding(
            task,
            i,
            shift,
            shift.p,
            f"as they are, a simple model predicts {percent(task.accuracy[i])} of them "
            f"(guessing: {percent(task.chance[i])})",
        )
    elif not task.binned and _is_target(task) and part.x.shape[0] > 20 * math.sqrt(part.x.shape[1]):
        yield RULE.finding(
            f"no simple model predicts {of(task.field, part.shard)} from {', '.join(task.inputs[:3])} better than "
            "guessing "
            f"({percent(task.accuracy[i])} against {percent(task.chance[i])})",
            place(part.shard, task.field),
            part.shard.name,
            bearing=Bearing.COMPANION,
            severity=Severity.INFO,
            measured={"field": task.field, "accuracy": task.accuracy[i], "chance": task.chance[i], "kind": "at-chance"},
        )


def _is_target(task: Task) -> bool:
    """Whether a label is what is to be predicted: by its name, or as the only one beside inputs of many numbers."""
    only = len(task.data.labels) == 1 and any(
        int(np.prod(task.parts[0].shard.columns[n].row_shape)) > 1 or task.parts[0].shard.columns[n].kind != "number"
        for n in task.inputs
    )
    return is_target(task.field) or only


def _finding(task: Task, i: int, shift: Shift | None, p: float, evidence: str,
             pace: tuple[float, float] | None = None) -> Finding:
    shard = task.parts[i].shard
    if pace is not None:
        said = (f"{of(task.field, shard)} goes at another pace than its inputs: {evidence}; with {pace[0]:.3g} labels "
                f"for each row the way from guessing to perfect is {percent(pace[1])} done (labels of windows that are "
                f"{1 / pace[0]:.3g} times as long as those of the inputs)")
    elif shift is None:
        said = f"{of(task.field, shard)} does not belong to its inputs: {evidence}"
    else:
        rows = abs(shift.lag)
        said = (
            f"{of(task.field, shard)} is off by {rows} row{'s' * (rows != 1)} "
            f"({'late' if shift.lag < 0 else 'early'}): "
            f"{evidence}; after moving them by {shift.lag:+d} the way from guessing to perfect is "
            f"{percent(shift.skill)} done"
        )
    return RULE.finding(
        said,
        place(shard, task.field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": task.field,
            "inputs": tuple(task.inputs[:20]),
            "lag": shift.lag if shift else None,
            "p": shift.p if shift else p,
            "undone": shift.undone if shift else None,
            "accuracy": task.accuracy[i],
            "chance": task.chance[i],
            "pace": pace[0] if pace else None,
            "kind": "shifted" if shift else "paced" if pace else "shuffled",
            "shard": short(shard),
        },
    )
