"""Labels of one group of rows (a batch, an annotator, a site) that do not belong to their inputs as all others do.

A model of the other rows is as sure of the group's inputs as of any, and names the same mix of classes; the labels
agree with it as a guess does, or after some classes are exchanged. A harder group makes the model unsure, a group with
a relation of its own is predicted by a model of its own rows, and of both nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_field
from traindx_tools.on_data.features import narrowed, prepared, raw_features
from traindx_tools.on_data.inputs_apart import inputs_apart
from traindx_tools.on_data.label_maps import AS_GOOD, EACH, GAIN, is_closed, maps
from traindx_tools.on_data.label_stretches import AS_SURE, CONSTANT, SAME_MIX
from traindx_tools.on_data.significance import LEVEL, paired_tail, share_tail
from traindx_tools.on_data.tasks import Part, Task, folded, solved

FEWEST = 40
"""Rows of a group."""
SKILL = 0.4
"""Of the way from guessing to perfect, that the model reaches in the typical group."""
LOST = 0.2
"""The same, at most, in the group as it is."""
OWN = 0.5
"""Of the typical skill, that a model of the group's own rows reaches where its labels follow its inputs otherwise."""
FEW = 4
"""One of so many groups may be lost: where more are, groups are of different kinds."""
MOST_PRODUCTS = 1.2e10
"""Products of a task over all of its cuts: about two seconds of one core. Cuts called as origins come first."""
MOST_WIDTH = 700
"""Features, beyond which they are projected to as many: each costs its square for each row and its cube for a group."""
LAGS = tuple(k for k in range(-3, 4) if k)


@dataclass(frozen=True, eq=False)
class Lost:
    """Group `part` of a cut. `kind`: mapped, shifted, constant or lost."""

    cut: Cut
    part: int
    kind: str
    here: float
    """Share of its labels that the model names."""
    elsewhere: float
    log_chance: float
    moved: tuple[tuple[int, int], ...] = ()
    """Which kind means which, of mapped labels."""
    lag: int = 0
    label: int = 0


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows of a task with the groups of one cut: each group is judged by a model of all others."""

    y: Array
    x: Array
    member: Array
    scores: Array

    @property
    def named(self) -> Array:
        """The class that the model of the other groups names."""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def margin(self) -> Array:
        """How sure it is: what the named class is above the next one."""
        two = np.sort(self.scores, axis=1)[:, -2:]
        return np.asarray(two[:, 1] - two[:, 0])


def lost_groups(task: Task, comparisons: float) -> Iterator[Lost]:
    """The groups of every cut by a field whose labels are off."""
    parts = [p for p in task.parts if len(p.y)]
    cuts = list(by_field([p.shard for p in parts], (*task.data.labels, task.field))) if parts else []
    x = _inputs(task, parts, {c.by for c in cuts}) if cuts else None
    if x is None:
        return
    y = np.concatenate([p.y for p in parts])
    x = narrowed(x, MOST_WIDTH)
    some = _some(*x.shape)
    cost = len(some) * x.shape[1] ** 2 + max(len(c.names) for c in cuts) * x.shape[1] ** 3 / 3
    for cut in cuts[: max(1, int(MOST_PRODUCTS // cost))]:
        member = np.concatenate([m[p.index] for m, p in zip(cut.member, parts, strict=True)])[some]
        rows = _scored(task, y[some], x[some], cut, member)
        yield from _of_cut(task, rows, cut, comparisons * len(cuts) * len(cut.names))


def _some(rows: int, width: int) -> Array:
    """The rows that are looked at: fewer of wide tables, where each costs the square of its width."""
    most = int(MOST_PRODUCTS // (2 * width**2))
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))  # a step may pass by whole groups


def _inputs(task: Task, parts: Sequence[Part], groups: set[str]) -> Array | None:
    """Features of all rows without the fields that name groups: a model must not know a group by its name."""
    left = tuple(n for n in task.inputs if n not in groups)
    if left == task.inputs:
        return np.concatenate([p.x for p in parts])
    return np.concatenate(prepared([raw_features(p.shard, left, p.index) for p in parts])) if left else None


def _scored(task: Task, y: Array, x: Array, cut: Cut, member: Array) -> _Rows:
    """The rows by models of the other groups."""
    kinds = len(task.kinds)
    hot = np.eye(kinds, dtype=np.float32)[y]
    groups = [member == g for g in range(-1, len(cut.names))]
    grams = [(x[m].T @ x[m]).astype(np.float64) for m in groups]
    crosses = [(x[m].T @ hot[m]).astype(np.float64) for m in groups]
    gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
    scores = np.zeros((len(y), kinds), np.float32)
    for m, own, mine in zip(groups, grams, crosses, strict=True):
        if m.any():
            scores[m] = x[m] @ solved(gram - own, cross - mine)
    return _Rows(y, x, member, scores)


def _of_cut(task: Task, rows: _Rows, cut: Cut, comparisons: float) -> Iterator[Lost]:
    members = {p: rows.member == p for p in range(len(cut.names))}
    members = {p: m for p, m in members.items() if int(m.sum()) >= FEWEST}
    if len(members) < FEW:
        return
    guess = float(np.bincount(rows.y).max() / len(rows.y))
    named = rows.named
    skills = {p: skill(named[m] == rows.y[m], guess) for p, m in members.items()}
    typical = float(np.median(list(skills.values())))
    if typical < SKILL:
        return
    found = []
    for part, inside in members.items():
        if skills[part] <= max(LOST, 0.75 * typical):
            one = _of_group(task, rows, cut, inside, part, comparisons, (skills[part], typical))
            found += [one] if one is not None else []
    if len(found) <= max(1, len(members) // FEW):
        yield from found


def skill(hits: Array, guess: float) -> float:
    """Of the way from guessing the most frequent label to perfect."""
    return (float(hits.mean()) - guess) / max(1e-9, 1.0 - guess)


def _of_group(task: Task, rows: _Rows, cut: Cut, inside: Array, part: int, comparisons: float,
              skills: tuple[float, float]) -> Lost | None:
    mine, typical = skills
    y, named, kinds = rows.y[inside], rows.named[inside], len(task.kinds)
    hits = named == y
    guess = float(np.bincount(rows.y).max() / len(rows.y))
    here, elsewhere = float(hits.mean()), float((rows.named[~inside] == rows.y[~inside]).mean())
    mapped = _mapped(kinds, y, named, typical, comparisons)
    if mapped is not None and _changed(rows, part, mapped[1]):
        return None
    if mapped is not None:
        return Lost(cut, part, "mapped", here, elsewhere, mapped[0], moved=mapped[1])
    if mine > LOST or not _inputs_alike(rows, inside, kinds):
        return None
    p = share_tail(int((~hits).sum()), len(hits), min(0.99, 1.0 - 0.5 * (elsewhere + guess)))
    chance = math.log(max(p, 1e-300)) + math.log(comparisons)
    if chance > math.log(LEVEL):
        return None
    counts = np.bincount(y, minlength=kinds)
    if counts.max() >= CONSTANT * len(y):
        return Lost(cut, part, "constant", here, elsewhere, chance, label=int(counts.argmax()))
    for lag in LAGS:
        if skill(named == np.roll(y, lag), guess) >= AS_GOOD * typical:
            return Lost(cut, part, "shifted", here, elsewhere, chance, lag=lag)
    own = Part(task.parts[0].shard, np.flatnonzero(inside), rows.x[inside], y)
    if skill(folded(own, y, kinds).argmax(axis=1) == y, float(counts.max() / len(y))) >= OWN * typical:
        return None
    return Lost(cut, part, "lost", here, elsewhere, chance)


def _changed(rows: _Rows, part: int, moved: Sequence[tuple[int, int]]) -> bool:
    """Whether the inputs of a group are of another kind, whatever its labels mean."""
    meant, inside = rows.y.copy(), rows.member == part
    for kind, other in moved:
        meant[inside & (rows.y == kind)] = other
    groups = [np.flatnonzero(rows.member == g) for g in np.unique(rows.member[rows.member >= 0])]
    return inputs_apart(rows.x, meant, groups, int((np.unique(rows.member[rows.member >= 0]) == part).argmax()))


def _inputs_alike(rows: _Rows, inside: Array, kinds: int) -> bool:
    """Whether the model is as sure of the group's inputs as of others, and names the same mix of classes."""
    if float(np.median(rows.margin[inside])) < AS_SURE * float(np.median(rows.margin[~inside])):
        return False
    mixes = [np.bincount(rows.named[m], minlength=kinds) / m.sum() for m in (inside, ~inside)]
    noise = 0.8 * math.sqrt(kinds / float(inside.sum()) / 2.0)  # the mean of a distance that sampling makes
    return 0.5 * float(np.abs(mixes[0] - mixes[1]).sum()) <= SAME_MIX + noise


def exchanged(kinds: int, y: Array, named: Array, comparisons: float
              ) -> tuple[Array, tuple[int, ...], float, int] | None:
    """The permutation of the classes that makes labels agree with what a model names, the labels that it moves, the log
    of its chance, and how many rows more agree; None where there is none beyond chance."""
    confusion = np.zeros((kinds, kinds))
    np.add.at(confusion, (y, named), 1.0)
    best = assigned(-confusion - 0.5 * np.eye(kinds))
    moved = tuple(int(k) for k in np.unique(y) if best[k] != k and confusion[k, best[k]] >= EACH)
    after, before = best[y] == named, y == named
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    chance = math.log(max(paired_tail(gained, lost), 1e-300)) + math.log(comparisons)
    chance += maps(len(np.unique(y)), len(moved))
    if len(moved) < 2 or chance > math.log(LEVEL) or gained - lost < GAIN * float(np.isin(y, moved).sum()):
        return None
    return np.asarray(best), moved, chance, gained - lost


def _mapped(kinds: int, y: Array, named: Array, typical: float, comparisons: float
            ) -> tuple[float, tuple[tuple[int, int], ...]] | None:
    """Log of the chance, and which class means which, where exchanging classes makes the labels agree."""
    found = exchanged(kinds, y, named, comparisons)
    if found is None:
        return None
    best, moved, chance, more = found
    guess = float(np.bincount(y).max() / len(y))
    if skill(best[y] == named, guess) < AS_GOOD * typical or not is_closed(moved, best, more, len(y)):
        return None
    return chance, tuple((k, int(best[k])) for k in moved)


def names_of(task: Task, kinds: Sequence[int]) -> list[str]:
    """Labels as a person knows them."""
    from traindx_tools.on_data.roles import label_name

    said = [label_name(task.data.shards, task.field, task.kinds[k]) for k in kinds]
    return [f"values from {s}" if task.binned else s for s in said]
