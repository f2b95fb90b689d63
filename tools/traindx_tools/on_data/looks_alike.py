"""Which pictures or sounds are changed copies of others: mirrored, turned, lit otherwise, shifted a little."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column, Contents

SIDE = 32
"""Pixels along each side of what is compared."""
SMALL = 8
"""Cells along a side by which neighbours are found; they are compared in all pixels."""
SHIFTS = 4
"""Pixels of 32 by which a copy may be shifted."""
NEIGHBOURS = 3
"""Candidates of each picture that are compared pixel by pixel."""

CROPS = (28, 25, 22)
"""Pixels of 32 along a side of the parts by which copies that were cut are found."""
STEP = 2
ROUGHLY = 0.8
"""Correlation of 8 x 8 cells below which pixels are not compared."""

Turn = Callable[[Array], Array]
PICTURE: tuple[tuple[str, Turn], ...] = (
    ("as it is", lambda a: a),
    ("mirrored", lambda a: a[:, :, ::-1]),
    ("upside down", lambda a: a[:, ::-1]),
    ("turned by 180 degrees", lambda a: a[:, ::-1, ::-1]),
    ("turned by 90 degrees", lambda a: np.rot90(a, 1, (1, 2))),
    ("turned by 270 degrees", lambda a: np.rot90(a, 3, (1, 2))),
    ("transposed", lambda a: a.transpose(0, 2, 1)),
    ("transposed and turned by 180 degrees", lambda a: a[:, ::-1, ::-1].transpose(0, 2, 1)),
)
"""The eight symmetries of a square."""
SOUND: tuple[tuple[str, Turn], ...] = (PICTURE[0], ("read backwards", PICTURE[1][1]))


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each picture the correlation with its nearest, which that is, and the turn under which it is."""

    alike: Array
    other: Array
    turn: Array


def standard(contents: Sequence[Contents]) -> list[Array]:
    """float32 shape (rows, 32, 32) of each: ranks of the pixels, which no change of brightness and contrast moves.

    Sounds have the mean spectrum of all of them taken away: all have much of it.
    """
    if contents[0].sounds:
        mean = np.mean(np.concatenate([c.images for c in contents]), axis=0)
        return [_scaled(c.images - mean) for c in contents]
    return [_scaled(_ranks(c.images)) for c in contents]


def _ranks(images: Array) -> Array:
    """Mean ranks: pixels of one value have one rank."""
    flat = images.reshape(len(images), -1)
    order = np.argsort(flat, axis=1, kind="stable")
    out = np.empty(flat.shape, np.float32)
    for row, (values, by) in enumerate(zip(flat, order, strict=True)):
        ordered = values[by]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        ends = np.append(starts[1:], len(ordered))
        out[row, by] = np.repeat((starts + ends - 1) / 2.0, ends - starts)
    return out.reshape(images.shape)


def _scaled(images: Array) -> Array:
    centred = images - images.mean(axis=(1, 2), keepdims=True)
    size = np.sqrt((centred**2).mean(axis=(1, 2), keepdims=True))
    return np.asarray(np.where(size > 1e-6, centred / np.maximum(size, 1e-6), 0.0), np.float32)


def _small(images: Array) -> Array:
    cells = images.shape[1] // SMALL
    small = images.reshape(len(images), SMALL, cells, SMALL, cells).mean(axis=(2, 4)).reshape(len(images), -1)
    return np.asarray(small / np.maximum(np.linalg.norm(small, axis=1, keepdims=True), 1e-9))


def nearest(mine: Array, known: Array, turns: Sequence[tuple[str, Turn]], own: Array | None = None) -> Nearest:
    """The nearest of `known` for each of `mine`, standardised. `own`: the place of each among `known`, left out."""
    near = _small(known).T
    scores, others, hows = [], [], []
    for k, (_, turn) in enumerate(turns):
        alike = _small(np.ascontiguousarray(turn(mine))) @ near
        if own is not None:
            alike[np.arange(len(mine)), own] = -1.0
        best = np.argpartition(-alike, min(NEIGHBOURS, alike.shape[1]) - 1, axis=1)[:, :NEIGHBOURS]
        scores.append(np.take_along_axis(alike, best, axis=1))
        others.append(best)
        hows.append(np.full(best.shape, k))
    score, other, how = (np.concatenate(a, axis=1) for a in (scores, others, hows))
    order = np.argsort(-score, axis=1)[:, :NEIGHBOURS]
    other, how = np.take_along_axis(other, order, axis=1), np.take_along_axis(how, order, axis=1)
    exact = np.full(other.shape, -1.0, np.float32)
    for k, (_, turn) in enumerate(turns):
        rows, places = np.nonzero(how == k)
        if len(rows):
            exact[rows, places] = _shifted(np.ascontiguousarray(turn(mine[rows])), known[other[rows, places]])
    top = exact.argmax(axis=1)
    at = np.arange(len(mine))
    return Nearest(exact[at, top], other[at, top], how[at, top])


def _shifted(a: Array, b: Array) -> Array:
    """float32 shape (pairs,): the correlation after the best small shift, of the pixels that both have."""
    side = a.shape[1]
    cross = np.fft.irfft2(np.fft.rfft2(a) * np.conj(np.fft.rfft2(b)), s=a.shape[1:])
    steps = np.arange(-SHIFTS, SHIFTS + 1)
    near = cross[:, steps % side][:, :, steps % side].reshape(len(a), -1)
    found = near.argmax(axis=1)
    out = np.empty(len(a), np.float32)
    for at in np.unique(found):
        pairs = found == at
        dy, dx = (int(steps[k]) for k in divmod(int(at), len(steps)))
        p = a[pairs, max(0, dy):side + min(0, dy), max(0, dx):side + min(0, dx)].reshape(int(pairs.sum()), -1)
        q = b[pairs, max(0, -dy):side + min(0, -dy), max(0, -dx):side + min(0, -dx)].reshape(len(p), -1)
        p, q = p - p.mean(axis=1, keepdims=True), q - q.mean(axis=1, keepdims=True)
        size = np.einsum("ij,ij->i", p, p) * np.einsum("ij,ij->i", q, q)
        out[pairs] = np.where(size > 1e-3, np.einsum("ij,ij->i", p, q) / np.sqrt(np.maximum(size, 1e-9)), 0.0)
    return out


def cropped(mine: Array, known: Array, own: Array | None = None, sounds: bool = False) -> Nearest:
    """For each of `mine` the picture of `known` of which it is best a part, mirrored or not; standardised pictures.

    Of a sound a part is one in time, of all its bands, and never mirrored.

    The best window of all known pictures is found by 8 x 8 cells and its picture laid beside in all pixels, at finer
    steps of size and place. `own`: the place of each among `known`, left out. `turn`: 1 where mirrored.
    """
    windows, of = _windows(known, sounds)
    rough, other, turn = (np.full(len(mine), fill) for fill in (-1.0, 0, 0))
    both = [np.ascontiguousarray(way(mine)) for _, way in PICTURE[: 1 if sounds else 2]]
    for k, turned in enumerate(both):
        alike = _small(turned) @ windows.T
        if own is not None:
            alike[of[None, :] == own[:, None]] = -1.0
        top = alike.argmax(axis=1)
        score = alike[np.arange(len(mine)), top]
        better = score > rough
        rough, other = np.where(better, score, rough), np.where(better, of[top], other)
        turn = np.where(better, k, turn)
    best = np.minimum(rough, ROUGHLY).astype(np.float32)
    for row in np.flatnonzero(rough >= ROUGHLY):
        best[row] = _best_window(both[turn[row]][row], known[other[row]], sounds)
    return Nearest(best, other, turn)


def _windows(known: Array, sounds: bool) -> tuple[Array, Array]:
    """float32 shape (windows, 64): parts of each picture of three sizes at nine places; and of which each is.

    Of sounds, whose times are the last axis, parts of it at five places.
    """
    out, of = [], []
    for side in CROPS:
        starts = np.linspace(0, SIDE - side, 5 if sounds else 3).astype(int)
        for y, x in itertools.product([0] if sounds else starts, starts):
            part = known[:, y:(SIDE if sounds else y + side), x:x + side]
            out.append(_small(_scaled(_stretched(part))))
            of.append(np.arange(len(known)))
    return np.concatenate(out), np.concatenate(of)


def _stretched(part: Array) -> Array:
    """A window as `SIDE` x `SIDE` pixels, between its pixels by straight lines."""
    for axis in (1, 2):
        size = part.shape[axis]
        at = np.clip((np.arange(SIDE) + 0.5) * size / SIDE - 0.5, 0, size - 1)
        low = np.minimum(at.astype(np.int64), size - 2)
        share = (at - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(3)])
        part = np.take(part, low, axis=axis) * (1 - share) + np.take(part, low + 1, axis=axis) * share
    return np.asarray(part, np.float32)


def _best_window(picture: Array, source: Array, sounds: bool) -> float:
    """The largest correlation of a picture with any window of another."""
    step = 1 if sounds else STEP
    windows = np.concatenate([
        _stretched(np.stack([source[y:(SIDE if sounds else y + side), x:x + side]
                             for y in range(0, 1 if sounds else SIDE - side + 1, step)
                             for x in range(0, SIDE - side + 1, step)]))
        for side in range(CROPS[-1] - 2, SIDE, step)
    ])
    flat = _scaled(windows).reshape(len(windows), -1)
    return float((flat @ picture.reshape(-1)).max() / flat.shape[1])


def contents_of(column: Column, rows: Array) -> Contents | None:
    """Grey thumbnails of rows that are pictures: two axes of at least 8, and one of channels at most."""
    shape = column.row_shape
    long = [a for a, n in enumerate(shape) if n >= SMALL]
    channels = [n for a, n in enumerate(shape) if a not in long]
    if column.kind != "number" or len(long) != 2 or len(channels) > 1 or any(n > 4 for n in channels):
        return None
    grey = np.nan_to_num(np.asarray(column.values[rows], np.float32))
    for axis in (a for a in range(len(shape)) if a not in long):
        grey = grey.mean(axis=axis + 1)
    for axis in (1, 2):
        grey = _resized(grey, axis)
    return Contents(rows, grey)


def _resized(images: Array, axis: int) -> Array:
    """`SIDE` cells along an axis: means of what lies in each, or the nearest pixel."""
    size = images.shape[axis]
    if size < SIDE:
        return np.asarray(np.take(images, np.arange(SIDE) * size // SIDE, axis=axis))
    edges = np.linspace(0, size, SIDE + 1).astype(np.int64)
    shape = [1, 1, 1]
    shape[axis] = SIDE
    return np.asarray(np.add.reduceat(images, edges[:-1], axis=axis) / np.diff(edges).reshape(shape))
