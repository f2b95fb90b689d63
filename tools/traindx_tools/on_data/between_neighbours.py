"""Label images whose pixels lie between the classes on both sides of them: what interpolation leaves of every border.

Where classes are numbered without gaps, what stands between class 0 and class 5 is a class as well; only that it stands
there along all borders, with all the values between, and in one part alone tells that the images were resized so.
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


def between(image: Array) -> tuple[float, Array]:
    """Share of pixels strictly between their neighbours on both sides, and int64 (pixels, 3): lower, own, higher."""
    found = []
    for x in (image, image.T):
        low, own, high = x[:-2], x[1:-1], x[2:]
        sides = np.minimum(low, high), np.maximum(low, high)
        mark = (sides[0] < own) & (own < sides[1])
        found.append(np.stack([sides[0][mark], own[mark], sides[1][mark]], axis=1))
    every = np.concatenate(found)
    return len(every) / max(1, image.size), every


def odd_part(images: Sequence[Array], cuts: Sequence[Cut]) -> OddPart | None:
    """The part of a cut (`member[0]` of the images) in which all borders are so; None where none is, or all are."""
    if len(images) < 3 * FEWEST or len(np.unique(np.concatenate([np.unique(i) for i in images[:50]]))) < CLASSES:
        return None
    made = [between(i) for i in images]
    share = np.array([s for s, _ in made])
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
            pair = _values_between(np.concatenate([made[i][1] for i in np.flatnonzero(mine)]))
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
