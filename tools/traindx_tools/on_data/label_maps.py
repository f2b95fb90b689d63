"""The permutation of classes under which a shard's labels agree with a model of the other shards."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL, paired_tail, share_bound
from traindx_tools.on_data.tasks import USEFUL, Task

GAIN = 0.2
"""Share of the rows of the moved labels that must agree only after the permutation."""
AS_GOOD = 0.5
"""Of the others' skill: what the model must reach after it, so that it explains the labels."""
FEWEST = 30
EACH = 5
"""Rows of a class from which its new number is told."""


@dataclass(frozen=True, eq=False)
class LabelMap:
    """`best[k]`: what label k of the shard is elsewhere; `moved`: the labels that are others; shares that agree; p.

    `undone`: of the rows of the moved labels, the lower bound of the share that agrees only after the permutation.
    """

    best: Array
    moved: tuple[int, ...]
    before: float
    after: float
    p: float
    undone: float = 0.0


def label_map(task: Task, i: int, comparisons: int) -> LabelMap | None:
    """The map of a part that linear assignment finds, where it is surely another one and explains the labels."""
    scores, part, others = task.scores[i], task.parts[i], task.others(i)
    if scores is None or not others or len(part.y) < FEWEST:
        return None
    named, kinds = scores.argmax(axis=1), len(task.kinds)
    confusion = np.zeros((kinds, kinds))
    np.add.at(confusion, (part.y, named), 1.0)
    seen = np.unique(part.y)
    typical = float(np.median([task.skill(j) for j in others]))
    needed = max(USEFUL, AS_GOOD * typical)
    most = float(confusion.max(axis=1).sum())  # no map agrees with more rows; an assignment is dear
    if (most - np.trace(confusion)) * math.log(2.0) < math.log(comparisons / LEVEL) or (
        most / len(part.y) - task.chance[i] < needed * (1.0 - task.chance[i])
    ):
        return None
    best = assigned(-confusion - 0.5 * np.eye(kinds))
    moved = tuple(int(k) for k in seen if best[k] != k and confusion[k, best[k]] >= EACH)
    after, before = best[part.y] == named, part.y == named
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    p = paired_tail(gained, lost)
    chance = math.log(max(p, 1e-300)) + maps(len(seen), len(moved)) + math.log(comparisons)
    of_moved = int(np.isin(part.y, moved).sum())
    if len(moved) < 2 or gained - lost < GAIN * of_moved or chance > math.log(LEVEL):
        return None
    skill = (float(after.mean()) - task.chance[i]) / max(1e-9, 1.0 - task.chance[i])
    closed = is_closed(moved, best, gained - lost, len(part.y))
    if skill < needed or (typical < USEFUL and len(others) > 1) or not closed:
        return None
    undone = share_bound(gained - lost, of_moved)
    return LabelMap(best, moved, float(before.mean()), float(after.mean()), p, undone)


def maps(kinds: int, moved: int) -> float:
    """Log of how many maps move so many of the kinds, over all numbers of them."""
    return math.lgamma(kinds + 1) - math.lgamma(kinds - moved + 1) + math.log(kinds)


def is_closed(moved: tuple[int, ...], best: Array, gain: int, rows: int) -> bool:
    """Whether a few classes changed places among each other: of a gain that is small over all rows no less is asked.

    A harder source is taken for one class or another, and seldom for each other's in a ring.
    """
    return gain >= GAIN * rows or {int(best[k]) for k in moved} == set(moved)
