"""Label images whose pixels lie between the classes on both sides of them: what interpolation leaves of every border.

Where classes are numbered without gaps, what stands between class 0 and class 5 is a class as well; only that it stands
there along all borders, with all the values between, and in one part alone tells that the images were resized so.
A border is what rises, or falls, from pixel to pixel: of an image that was made twice as large it is three steps wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut

GAP = 3
"""Numbers that the classes on both sides are apart at least, so that two values and more fit between."""
OFTEN = 0.05
"""Share of the pixels between two classes that a value must have to count."""
FEWEST = 8
MORE = 5.0
SHARE = 0.002
ABOVE = 0.8
CLASSES = 4


@dataclass(frozen=True, eq=False)
class OddPart:
    """The part whose images were interpolated: medians of the share of pixels that lie between."""

    cut: Cut
    part: int
    inside: float
    outside: float
    between: tuple[tuple[int, int], int]
    """Two classes, and how many values stand between them."""


_WIDE, _SLOW, _AT_ONCE = 12, 0.8, 0.25
"""Borders of an image between classes that are apart, at least; shares of them that pass through a value between: of an
image that was resized so at least, of another one at most."""
_UNCLEAR = 0.1
"""Share of the images that are neither, at most."""


@dataclass(frozen=True, eq=False)
class OddImages:
    """bool shape (images,): those whose borders pass through values between; two classes and how many are between."""

    marks: Array
    looked_at: int
    between: tuple[tuple[int, int], int]


def borders(image: Array) -> tuple[int, int, Array]:
    """Borders between classes `GAP` apart, how many of them pass values between, and int64 (pixels, 3) of these.

    The three are the lower class, the pixel's value, the higher class.
    """
    wide, slow, found = 0, 0, []
    for x in (image, image.T):
        step = np.sign(np.diff(x, axis=1))
        new = np.ones_like(step, bool)
        new[:, 1:] = step[:, 1:] != step[:, :-1]
        row, first = np.nonzero(new & (step != 0))
        ends = np.concatenate([np.flatnonzero(new.reshape(-1)), [new.size]])
        lengths = np.diff(ends)[step.reshape(-1)[ends[:-1]] != 0]
        low, high = x[row, first], x[row, first + lengths]
        apart = np.abs(high - low) >= GAP
        wide += int(apart.sum())
        several = apart & (lengths > 1)
        slow += int(several.sum())
        for length in np.unique(lengths[several]):
            some = several & (lengths == length)
            for k in range(1, int(length)):
                own = x[row[some], first[some] + k]
                sides = low[some], high[some]
                found.append(np.stack([np.minimum(*sides), own, np.maximum(*sides)], axis=1))
    return wide, slow, np.concatenate(found) if found else np.empty((0, 3), np.int64)


_WHOLLY, _COMMON = 0.95, 0.002
"""Share of the images of a file that are of its kind, and of its pixels that a class has to be one of the file."""


def odd_images(images: Sequence[Array], file: Array | None = None) -> OddImages | None:
    """The images whose borders pass through values between; None where none do, most do, or some do in part.

    Most may, where all of a `file` (int64 of each image) do and all of another, which holds the same classes, do not:
    nothing but interpolation takes a whole file through the classes between, so that it needs no majority to be told.
    """
    made = [borders(i) for i in images]
    share = np.array([slow / wide if wide >= _WIDE else np.nan for wide, slow, _ in made])
    odd, sound = share >= _SLOW, share <= _AT_ONCE
    judged = int(np.isfinite(share).sum())
    if int(odd.sum()) < 3 or int(sound.sum()) < FEWEST:
        return None
    if odd.sum() > sound.sum() and (file is None or not _by_files(images, odd, sound, file)):
        return None
    if judged - int(odd.sum()) - int(sound.sum()) > _UNCLEAR * judged:
        return None
    pair = _values_between(np.concatenate([made[i][2] for i in np.flatnonzero(odd)]))
    return OddImages(odd, judged, pair) if pair is not None else None


def _by_files(images: Sequence[Array], odd: Array, sound: Array, file: Array) -> bool:
    """Whether every file is of one kind or the other throughout, and both kinds hold the same classes."""
    classes: list[list[frozenset[int]]] = [[], []]
    for k in np.unique(file[odd | sound]):
        mine = file == k
        counts = int(odd[mine].sum()), int(sound[mine].sum())
        if max(counts) < 2 * FEWEST or max(counts) < _WHOLLY * sum(counts):
            return False
        values, pixels = np.unique(np.concatenate([images[i].ravel() for i in np.flatnonzero(mine).tolist()]),
                                   return_counts=True)
        classes[counts[0] < counts[1]].append(frozenset(values[pixels >= _COMMON * pixels.sum()].tolist()))
    return bool(classes[0] and classes[1]) and all(o <= s for o in classes[0] for s in classes[1])


def between(image: Array) -> float:
    """Share of pixels strictly between their neighbours on both sides, in both directions."""
    found = 0
    for x in (image, image.T):
        low, own, high = x[:-2], x[1:-1], x[2:]
        found += int(((np.minimum(low, high) < own) & (own < np.maximum(low, high))).sum())
    return found / max(1, image.size)


def odd_part(images: Sequence[Array], cuts: Sequence[Cut]) -> OddPart | None:
    """The part of a cut (`member[0]` of the images) in which all borders are so; None where none is, or all are."""
    if len(images) < 3 * FEWEST or len(np.unique(np.concatenate([np.unique(i) for i in images[:50]]))) < CLASSES:
        return None
    share = np.array([between(i) for i in images])
    best: OddPart | None = None
    for cut in cuts:
        for part in range(len(cut.names)):
            mine = cut.member[0] == part
            if not FEWEST <= int(mine.sum()) <= len(images) - FEWEST or mine.mean() > 0.6:
                continue
            inside, outside = float(np.median(share[mine])), float(np.median(share[~mine]))
            bound = float(np.quantile(share[~mine], 0.95))
            if inside < MORE * outside + SHARE or float((share[mine] > bound).mean()) < ABOVE:
                continue
            pair = _values_between(np.concatenate([borders(images[i])[2] for i in np.flatnonzero(mine).tolist()]))
            if pair is not None and (best is None or inside > best.inside):
                best = OddPart(cut, part, inside, outside, pair)
    return best


def _values_between(triples: Array) -> tuple[tuple[int, int], int] | None:
    """The two classes that most often have a value between them, where several have; None: a thin class, always one."""
    wide = triples[triples[:, 2] - triples[:, 0] >= GAP]
    if len(wide) < 10 * FEWEST:
        return None
    pairs, at, counts = np.unique(wide[:, [0, 2]], axis=0, return_inverse=True, return_counts=True)
    several = 0.0
    first: tuple[tuple[int, int], int] | None = None
    for k in np.argsort(-counts):
        values = np.unique(wide[at.reshape(-1) == k, 1], return_counts=True)[1]
        common = int((values >= OFTEN * values.sum()).sum())
        several += counts[k] if common >= 2 else 0
        if common >= 2 and first is None:
            first = (int(pairs[k][0]), int(pairs[k][1])), common
    return first if several >= 0.7 * len(wide) else None
