"""In one stretch of a file labels do not belong to their rows: shifted, of other meaning, or of another mix.

A simple model predicts the labels of the rest of the file. In the stretch it fails as guessing does, and after moving
the labels by some rows, or after exchanging classes, it succeeds again. A stretch that is only harder does not. Labels
that are one constant there, or of another mix, are told where the model is as sure of the inputs as elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.inputs_apart import blocks_beside, inputs_apart
from traindx_tools.on_data.label_stretches import AS_SURE, MIX, OtherMix, filled, other_mix
from traindx_tools.on_data.places import of, percent, place, short
from traindx_tools.on_data.roles import label_name
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stretches import Stretch, heaviest, log_chance
from traindx_tools.on_data.tasks import Task, in_order, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

LAGS = tuple(k for k in range(-5, 6) if k)
SKILL = 0.4
LOST = 0.2
AS_GOOD = 0.6
FEWEST = 40
WHOLE = 0.6

RULE = Rule(
    id="D123",
    name="pairing-stretch",
    title="From some row on labels do not belong to their inputs",
    severity=Severity.HIGH,
    sees="what a simple model predicts of labels, row by row in the file's order, shifted and with classes exchanged",
    matters="These labels teach the wrong thing, and averages over the file hide it.",
    alike=("A harder part of the file.", "Files sorted by class or by time: their neighbours are alike."),
    confirm=("Look at ten rows before and ten behind the named row.",),
    thresholds={
        "skill": Threshold(SKILL, "of the way from guessing to perfect", "that the model must reach outside"),
        "lost": Threshold(LOST, "of the way from guessing to perfect", "at most, in the stretch as it is"),
        "as_good": Threshold(AS_GOOD, "of the skill outside", "in the stretch after the change, which explains it"),
        "mix": Threshold(MIX, "total variation distance", "of labels in the stretch to the rest, and to the model's"),
        "as_sure": Threshold(AS_SURE, "of the median margin outside", "below, the inputs are of another kind too"),
        "rows": Threshold(FEWEST, "rows", "of the stretch, and outside"),
        "whole": Threshold(WHOLE, "share of the file", "above, D108 and D109 judge the file as a whole"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all stretches, files, labels and changes"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one stretch of each file and label."""
    for data in view.sets:
        for task in tasks_of(data):
            for i, part in enumerate(task.parts):
                if (in_order(part) and len(part.y) >= 2 * FEWEST and not (task.binned and _goes_one_way(part.y))
                        and task.scores[i] is not None):
                    yield from _of_part(task, i, view.comparisons)


def _goes_one_way(y: Array) -> bool:
    """A number that only rises or falls with the rows: a clock or a count, which inputs follow as they follow time."""
    steps = np.diff(y)
    return bool((steps >= 0).all() or (steps <= 0).all())


def _of_part(task: Task, i: int, comparisons: int) -> Iterator[Finding]:
    y, scores = task.parts[i].y, task.scores[i]
    assert scores is not None
    named = scores.argmax(axis=1)
    hits = named == y
    best: tuple[float, Stretch, int] | None = None
    for lag in LAGS:
        moved = np.roll(y, lag) == named
        stretch = heaviest(moved.astype(np.float64) - hits)
        if _explains(task, i, stretch, hits, moved):
            inside = stretch.inside(len(y))
            gained, lost = int((moved & ~hits & inside).sum()), int((hits & ~moved & inside).sum())
            chance = log_chance(gained, lost, len(y), comparisons * len(LAGS))
            if chance < math.log(LEVEL) and (best is None or chance < best[0]):
                best = (chance, stretch, lag)
    if best is not None:
        yield _shifted(task, i, best[1], best[2], hits)
        return
    if task.parts[i].shard.numbers is not None:
        return  # a block of a sample may be one subject or recording, whose labels follow otherwise by nature
    mapped = list(_mapped(task, i, named, hits, comparisons))
    yield from mapped or _otherwise_mixed(task, i, hits, comparisons)


def _skill(hits: Array, chance: float) -> float:
    return (float(hits.mean()) - chance) / max(1e-9, 1.0 - chance)


def _explains(task: Task, i: int, stretch: Stretch, hits: Array, after: Array) -> bool:
    """Whether the stretch is at chance as it is, and as good as the rest after the change."""
    rows = len(hits)
    if stretch.rows < FEWEST or stretch.rows > WHOLE * rows or rows - stretch.rows < FEWEST:
        return False
    inside, y = stretch.inside(rows), task.parts[i].y
    guess_in = float(np.bincount(y[inside]).max() / stretch.rows)
    guess_out = float(np.bincount(y[~inside]).max() / (rows - stretch.rows))
    outside = _skill(hits[~inside], guess_out)
    # labels below chance are exchanged ones: guessing is the most that "lost" may be
    return outside >= SKILL and _skill(hits[inside], guess_in) <= LOST and (
        _skill(after[inside], guess_in) >= AS_GOOD * outside
    )


def _missed(task: Task, i: int, hits: Array) -> Stretch:
    """The stretch in which hits are rare."""
    rate, low = float(hits.mean()), min(0.9, task.chance[i])
    rate = min(0.98, max(rate, low + 0.05))
    return heaviest(np.where(hits, math.log(low / rate), math.log((1 - low) / (1 - rate))))


def _otherwise_mixed(task: Task, i: int, hits: Array, comparisons: int) -> Iterator[Finding]:
    """A stretch whose labels are constant, or of another mix, while a model of the rest sees the usual inputs."""
    y, scores, stretch = task.parts[i].y, task.scores[i], _missed(task, i, hits)
    assert scores is not None
    rest = len(y) - stretch.rows
    if task.binned or min(stretch.rows, rest) < FEWEST or stretch.rows > WHOLE * len(y):
        return
    outside = ~stretch.inside(len(y))
    if _skill(hits[outside], float(np.bincount(y[outside]).max() / rest)) < SKILL:
        return
    seen = other_mix(stretch, y, scores, comparisons)
    if seen is not None and seen.log_chance < math.log(LEVEL):
        yield _of_mix(task, i, stretch, seen, hits)


def _of_mix(task: Task, i: int, stretch: Stretch, seen: OtherMix, hits: Array) -> Finding:
    measured = {"kind": "stretch-mixed" if seen.label is None else "stretch-constant", "distance": seen.distance}
    if seen.label is None:
        said = f"{percent(seen.distance)} of them would have to change to be mixed as the others are"
        return _finding(task, i, stretch, said, hits, measured)
    stretch = filled(stretch, task.parts[i].y, seen.label)
    label = label_name(task.data.shards, task.field, task.kinds[seen.label])
    said = f"all of them are {label}, and the inputs are as elsewhere"
    return _finding(task, i, stretch, said, hits, measured)


def _mapped(task: Task, i: int, named: Array, hits: Array, comparisons: int) -> Iterator[Finding]:
    """A stretch in which classes are exchanged: found where hits are rare, proved by the best exchange."""
    y, kinds = task.parts[i].y, len(task.kinds)
    stretch = _missed(task, i, hits)
    if not _explains(task, i, stretch, hits, np.ones(len(y), bool)):  # before the assignment, which is dear
        return
    inside = stretch.inside(len(y))
    confusion = np.zeros((kinds, kinds))
    np.add.at(confusion, (y[inside], named[inside]), 1.0)
    best = assigned(-confusion - 0.5 * np.eye(kinds))
    after = best[y] == named
    if not _explains(task, i, stretch, hits, after):
        return
    gained, lost = int((after & ~hits & inside).sum()), int((hits & ~after & inside).sum())
    seen = np.unique(y[inside])
    chance = log_chance(gained, lost, len(y), comparisons) + math.lgamma(len(seen) + 1)
    moved = [int(k) for k in seen if best[k] != k and confusion[k, best[k]] >= 5]
    blocks, at = blocks_beside(len(y), stretch.start, stretch.end)
    if chance < math.log(LEVEL) and len(moved) >= 2 and not inputs_apart(
            task.parts[i].x, np.where(inside, best[y], y), blocks, at):
        said = ", ".join(f"{label_name(task.data.shards, task.field, task.kinds[k])} means "
                         f"{label_name(task.data.shards, task.field, task.kinds[best[k]])}" for k in moved[:4])
        yield _finding(task, i, stretch, f"{said} there", hits, {"kind": "stretch-mapped", "moved": len(moved)})


def _shifted(task: Task, i: int, stretch: Stretch, lag: int, hits: Array) -> Finding:
    said = f"they are off by {abs(lag)} row{'s' * (abs(lag) != 1)} ({'late' if lag < 0 else 'early'}) there"
    return _finding(task, i, stretch, said, hits, {"kind": "stretch-shifted", "lag": lag})


def _finding(task: Task, i: int, stretch: Stretch, said: str, hits: Array, measured: dict[str, Any]) -> Finding:
    shard, inside = task.parts[i].shard, stretch.inside(len(hits))
    numbers = task.parts[i].index if shard.numbers is None else shard.numbers[task.parts[i].index]
    first, last = int(numbers[stretch.start]), int(numbers[stretch.end - 1])
    among = "" if shard.numbers is None else " (of those that were looked at)"
    return RULE.finding(
        f"{of(task.field, shard)} does not belong to its inputs in rows {first}..{last}{among}: {said}; a simple "
        f"model agrees with {percent(float(hits[inside].mean()))} of them and with "
        f"{percent(float(hits[~inside].mean()))} of the other rows",
        place(shard, task.field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": task.field, "rows": (first, last), "shard": short(shard), **measured},
    )
