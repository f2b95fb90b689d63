"""Which pictures are changed copies of others, by what remains of them without what all pictures share.

Leaves, faces, scans of one device look alike as a whole, so that the likeness of a noisy or newly encoded copy is that
of two different pictures. What is common lies in few directions: without the first principal components of the training
pictures (and of their mirror images) two different ones have little in common, a copy and its original much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.looks_alike import Nearest, Turn

COMMON, KEPT = 64, 320
"""Components that are taken for what is common, and the last of those that are compared."""
MOST_COMMON = 8
"""Pictures for each component at least."""
MOST, MOST_OWN, MOST_KNOWN, MOST_FITTED = 300, 300, 4000, 1500
"""Rows that are compared, of training with itself as well; rows compared with; rows that the components are of."""
ALIKE = 0.35
"""Correlation below which none is a copy, whatever is usual: 256 directions of noise reach 0.25 among 4000 pictures
under eight turns (normal with a spread of 1/16, four of them)."""
USUAL = 0.005
"""Share of pictures that may have such a neighbour by nature."""
TYPICAL = 0.9
"""Quantile by which two sets are compared in how alike their own pictures are."""


def details(mine: Array, known: Array, turns: Sequence[tuple[str, Turn]]) -> tuple[Array, Nearest, float] | None:
    """Rows of `mine` that were compared, their nearest of `known`, and how alike copies must be.

    `mine`, `known`: float32 shape (rows, side, side), standardised. The bound lies above all but `USUAL` of what is
    found within `known`, and higher where those of `mine` are more alike among each other (blurred ones, say; some of
    these may be copies of one picture, so that nine tenths tell it). None where pictures are too few.
    """
    common = min(COMMON, len(known) // MOST_COMMON)
    if common < 4 or len(mine) < 2:
        return None
    fitted = _spread(known, MOST_FITTED)
    both = np.concatenate([turn(fitted).reshape(len(fitted), -1) for _, turn in turns[:2]])
    mean = both.mean(axis=0)
    gram = (both - mean).T @ (both - mean)
    basis = np.linalg.eigh(gram.astype(np.float64))[1][:, ::-1][:, common:KEPT].astype(np.float32)
    near = _remaining(_spread(known, MOST_KNOWN), mean, basis)
    at = _places(len(mine), MOST)
    found = _nearest(mine[at], near, mean, basis, turns)
    own = _places(len(near), MOST_OWN)
    within = _nearest(_spread(known, MOST_KNOWN)[own], near, mean, basis, turns, own)
    beside = _nearest(mine[at], _remaining(mine[at], mean, basis), mean, basis, turns, np.arange(len(at)))
    typical = [max(1e-6, float(np.quantile(n.alike, TYPICAL))) for n in (within, beside)]
    usual = float(np.quantile(within.alike, 1.0 - USUAL)) * max(1.0, typical[1] / typical[0])
    places = _places(len(known), MOST_KNOWN)
    return at, Nearest(found.alike, places[found.other], found.turn), max(ALIKE, usual)


def _places(count: int, most: int) -> Array:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _spread(images: Array, most: int) -> Array:
    return np.asarray(images[_places(len(images), most)])


def _remaining(images: Array, mean: Array, basis: Array) -> Array:
    """float32 shape (rows, directions) of length 1, or 0."""
    rest = (images.reshape(len(images), -1) - mean) @ basis
    return np.asarray(rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-6), np.float32)


def _nearest(mine: Array, near: Array, mean: Array, basis: Array, turns: Sequence[tuple[str, Turn]],
             own: Array | None = None) -> Nearest:
    best = np.full(len(mine), -1.0, np.float32)
    other, how = np.zeros(len(mine), np.int64), np.zeros(len(mine), np.int64)
    for k, (_, turn) in enumerate(turns):
        alike = _remaining(np.ascontiguousarray(turn(mine)), mean, basis) @ near.T
        if own is not None:
            alike[np.arange(len(mine)), own] = -1.0
        top = alike.argmax(axis=1)
        score = alike[np.arange(len(mine)), top]
        better = score > best
        best, other, how = np.where(better, score, best), np.where(better, top, other), np.where(better, k, how)
    return Nearest(best, other, how)
