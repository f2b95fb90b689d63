"""The run whose labels mean each other's classes, told by a simple model of all other runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.group_pairing import exchanged
from traindx_tools.on_data.inputs_apart import inputs_apart
from traindx_tools.on_data.label_maps import AS_GOOD, is_closed
from traindx_tools.on_data.named_runs import Looked
from traindx_tools.on_data.tasks import solved

SKILL = 0.4
"""Of the way from guessing to perfect, in the typical run."""
FEW = 0.25
"""Share of the runs that may be exchanged."""


@dataclass(frozen=True, eq=False)
class RunMap:
    """A run, which class its labels mean (`best[k]`), and shares of its labels that the model names."""

    run: str
    best: Array
    moved: tuple[int, ...]
    before: float
    after: float
    mirrored: float
    """The same of the mirrored pictures with the labels as they are."""
    looks_mirrored: bool
    """Whether its mean picture is nearer to that of all others once it is mirrored."""
    elsewhere: float
    log_chance: float
    changed: bool
    """Whether its inputs are of another kind whatever its labels mean."""


def mapped_runs(looked: Looked, runs: Mapping[str, Array], comparisons: float) -> list[RunMap]:
    """The runs with exchanged classes; none where many have, or the model tells too little."""
    x, flipped = looked.prepared()
    hot = np.eye(len(looked.kinds), dtype=np.float32)[looked.y]
    grams = {r: ((x[i].T @ x[i]).astype(np.float64), (x[i].T @ hot[i]).astype(np.float64)) for r, i in runs.items()}
    gram, cross = (np.sum([g[k] for g in grams.values()], axis=0) for k in (0, 1))
    named, turned = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    for run, at in runs.items():
        weights = solved(gram - grams[run][0], cross - grams[run][1])
        named[at], turned[at] = (x[at] @ weights).argmax(axis=1), (flipped[at] @ weights).argmax(axis=1)
    guess = float(np.bincount(looked.y).max() / len(looked.y))
    hits = {r: float((named[i] == looked.y[i]).mean()) for r, i in runs.items()}
    typical = (float(np.median(list(hits.values()))) - guess) / max(1e-9, 1.0 - guess)
    if typical < SKILL:
        return []
    found = []
    for run, at in runs.items():
        one = _mapped(looked.y[at], named[at], len(looked.kinds), typical, guess, comparisons * len(runs))
        if one is not None:
            rest = np.concatenate([i for r, i in runs.items() if r != run])
            found.append(RunMap(run, one[0], one[1], hits[run], float((one[0][looked.y[at]] == named[at]).mean()),
                                float((turned[at] == looked.y[at]).mean()), _looks_mirrored(looked, at, rest),
                                float(np.median([h for r, h in hits.items() if r != run])), one[2],
                                _changed(looked, x, runs, run, one[0])))
    return found if len(found) <= max(1, FEW * len(runs)) else []


def _changed(looked: Looked, x: Array, runs: Mapping[str, Array], run: str, best: Array) -> bool:
    """Whether the inputs of the run are of another kind, whatever its labels mean."""
    meant = looked.y.copy()
    meant[runs[run]] = best[looked.y[runs[run]]]
    return inputs_apart(x, meant, list(runs.values()), list(runs).index(run))


def _mapped(y: Array, named: Array, kinds: int, typical: float, guess: float, comparisons: float
            ) -> tuple[Array, tuple[int, ...], float] | None:
    """The permutation, the labels that it moves and the log of its chance, where it makes the labels agree."""
    found = exchanged(kinds, y, named, comparisons)
    if found is None:
        return None
    best, moved, chance, more = found
    after = best[y] == named
    skill = (float(after.mean()) - guess) / max(1e-9, 1.0 - guess)
    as_good = skill >= AS_GOOD * typical and is_closed(moved, best, more, len(y))
    return (best, moved, chance) if as_good else None


def _looks_mirrored(looked: Looked, mine: Array, rest: Array) -> bool:
    """By mean pictures in which each class weighs the same, as mirrored classes would exchange their weights."""
    means = []
    for at in (mine, rest):
        kinds = [at[looked.y[at] == k] for k in np.unique(looked.y[mine])]
        if any(not len(k) for k in kinds):
            return False
        mean = np.mean([looked.images[k].mean(axis=0) for k in kinds], axis=0)
        means.append(mean - mean.mean())
    own, others = means
    as_is, turned = float((own * others).sum()), float((own * others[:, ::-1]).sum())
    size = math.sqrt(float((own**2).sum()) * float((others**2).sum()))
    return size > 0 and turned / size > 0.5 and turned - as_is > 0.2 * size
