"""A stretch of one file whose labels are mixed otherwise than the rest while its inputs are not.

Where a source of another mix begins, its inputs say so too: a model of the rest names other classes there, or is less
sure. Where the model is as sure as elsewhere, names the same mix, and the labels agree with it no better than chance,
the labels were written by something that did not see the inputs: a default that stayed, a column that was filled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import share_tail
from traindx_tools.on_data.stretches import Stretch

MIX = 0.3
SAME_MIX = 0.2
AS_SURE = 0.75
CONSTANT = 0.98
KAPPA = 0.2
"""Agreement beyond chance (Cohen 1960) that is slight at most (Landis and Koch 1977)."""


@dataclass(frozen=True)
class OtherMix:
    """What the labels of a stretch are like. `label`: the kind that nearly all have, None for a mix."""

    distance: float
    """Total variation distance to the labels of the other rows."""
    label: int | None
    log_chance: float
    """Log of a bound on the chance that any stretch misses so often."""


def other_mix(stretch: Stretch, y: Array, scores: Array, comparisons: float) -> OtherMix | None:
    """What is told of a stretch, None where its inputs are of another kind too, or its labels of the same mix."""
    inside, kinds = stretch.inside(len(y)), scores.shape[1]
    named = scores.argmax(axis=1)
    labels, others, said, elsewhere = (_mix(v, kinds) for v in (y[inside], y[~inside], named[inside], named[~inside]))
    distance = _apart(labels, others)
    if distance < MIX or _apart(labels, said) < MIX or _apart(said, elsewhere) > SAME_MIX:
        return None
    margin = _margins(scores)
    if float(np.median(margin[inside])) < AS_SURE * float(np.median(margin[~inside])):
        return None
    if _kappa(y[inside], named[inside], labels, said) > KAPPA:
        return None
    missed, missed_else = named[inside] != y[inside], named[~inside] != y[~inside]
    p = share_tail(int(missed.sum()), len(missed), min(0.99, 2 * float(missed_else.mean()) + 0.02))
    chance = math.log(max(p, 1e-300)) + math.log(len(y) * (len(y) + 1) / 2.0) + math.log(max(1.0, comparisons))
    return OtherMix(distance, int(labels.argmax()) if labels.max() >= CONSTANT else None, chance)


def filled(stretch: Stretch, y: Array, label: int) -> Stretch:
    """The stretch with the rows before and behind it that have the same label, without those of another at its ends."""
    same = np.flatnonzero(y[stretch.start : stretch.end] == label)
    start, end = stretch.start + int(same[0]), stretch.start + int(same[-1]) + 1
    before, behind = np.flatnonzero(y[:start] != label), np.flatnonzero(y[end:] != label)
    return Stretch(int(before[-1]) + 1 if len(before) else 0, end + int(behind[0]) if len(behind) else len(y))


def _mix(labels: Array, kinds: int) -> Array:
    return np.bincount(labels, minlength=kinds) / max(1, len(labels))


def _apart(one: Array, other: Array) -> float:
    return 0.5 * float(np.abs(one - other).sum())


def _margins(scores: Array) -> Array:
    two = np.sort(scores, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _kappa(y: Array, named: Array, labels: Array, said: Array) -> float:
    by_chance = float((labels * said).sum())
    return (float((y == named).mean()) - by_chance) / max(1e-9, 1.0 - by_chance)
