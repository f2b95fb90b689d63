"""Whether sounds of one origin have the labels of all others once what sounds in them is stretched by a ratio of rates.

A recorder adds a background of its own, which no header of another rate moves. What stands out of it, the calls and the
words, is what labels are told by: a simple model of all other origins that is lost on one, and right again about the
same files once their foreground is stretched, has tried the cause by undoing it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.features import prepared
from traindx_tools.on_data.named_runs import Looked
from traindx_tools.on_data.significance import LEVEL, paired_tail
from traindx_tools.on_data.tasks import solved

ROWS, GROUPS = 20, 2
"""Labelled sounds of the origin, and other origins of so many."""
SKILL = 0.4
"""Of the way from guessing to perfect, that the model reaches in the typical other origin."""
AS_GOOD, LOST = 0.8, 0.6
"""Of the typical skill, at least after the ratio is undone, and at most before."""
BANDS = 6
"""Bands that both have, at least."""


@dataclass(frozen=True)
class Undone:
    """Shares of the labels that a model of the other origins names: as it is, after undoing the ratio, elsewhere."""

    label: str
    before: float
    after: float
    elsewhere: float


def labels_undone(looked: Looked, codes: Array, odd: int, ratio: float) -> Undone | None:
    """codes: (files,), the origin of each; -1 where it is not looked at. None: undoing `ratio` explains nothing."""
    mine = np.flatnonzero(codes == odd)
    others = [g for k in np.unique(codes[codes >= 0]) if k != odd and len(g := np.flatnonzero(codes == k)) >= ROWS]
    if len(mine) < ROWS or len(others) < GROUPS:
        return None
    plain, stretched = _profiles(looked.images, 1.0, ratio), _profiles(looked.images[mine], ratio, ratio)
    if plain.shape[1] < 2 * BANDS:
        return None
    x = prepared([np.concatenate([plain, stretched])])[0]
    x, undone = x[: len(plain)], x[len(plain):]
    guess = float(np.bincount(looked.y).max() / len(looked.y))
    named = _named(x, looked, np.concatenate(others), x[mine])
    after = _named(x, looked, np.concatenate(others), undone)
    typical = [float((_named(x, looked, np.concatenate([o for o in others if o is not g]), x[g]) == looked.y[g]).mean())
               for g in others]
    y, elsewhere = looked.y[mine], float(np.median(typical))
    skills = [(s - guess) / max(1e-9, 1.0 - guess) for s in
              (float((named == y).mean()), float((after == y).mean()), elsewhere)]
    gained, lost = int(((after == y) & (named != y)).sum()), int(((named == y) & (after != y)).sum())
    if skills[2] < SKILL or skills[1] < AS_GOOD * skills[2] or skills[0] > LOST * skills[2]:
        return None
    if paired_tail(gained, lost) > LEVEL:
        return None
    return Undone(looked.label, float((named == y).mean()), float((after == y).mean()), elsewhere)


def _named(x: Array, looked: Looked, rows: Array, at: Array) -> Array:
    hot = np.eye(len(looked.kinds))[looked.y[rows]]
    weights = solved((x[rows].T @ x[rows]).astype(np.float64), x[rows].T.astype(np.float64) @ hot)
    return np.asarray((at @ weights).argmax(axis=1))


def _profiles(images: Array, stretch: float, ratio: float) -> Array:
    """What stands out of each band's median over time, in its mean and at most, in the bands that a ratio leaves."""
    above = np.maximum(images - np.median(images, axis=2, keepdims=True), 0.0)
    profiles = np.stack([above.mean(axis=2), above.max(axis=2)], axis=1)
    bands = profiles.shape[2]
    centres = np.arange(bands) + 0.5
    at = centres[centres * ratio <= bands - 0.5] * stretch - 0.5
    low = np.clip(np.floor(at).astype(np.int64), 0, bands - 2)
    share = np.clip(at - low, 0.0, 1.0)
    return np.asarray(((1 - share) * profiles[:, :, low] + share * profiles[:, :, low + 1]).reshape(len(images), -1),
                      np.float32)
