"""Recordings in which a feature of a stream goes along with the others only after its sign is turned.

As for streams that lag (`stream_lags.py`): a ridge regression on the other recordings says each feature of a stream
from the other streams of its row and their changes. Where a mirrored camera, an axis that points the other way or a
left arm in place of a right one turned it, what is said is the negative of what is stored, and fits as well as
elsewhere once it is turned back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.recordings import SHORTEST, Recording
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stream_lags import AS_GOOD, FLOOR, MOST, MOST_ROWS, MOST_TOTAL, RIDGE, chance_of, sides

TOLD, USUAL = 0.3, 0.8
"""Share of a feature's squares that is told in the typical recording, and of the recordings with the usual sign."""
LEFT = 0.25
"""Of the squared errors as stored, the most that are left after turning."""
ALSO = 0.5
"""The same of further recordings, where it is sure of some: those that hardly move are told less of."""
MOST_ODD = 0.25
"""Share of the recordings that are turned, at most."""
_EACH = 24
"""Features of a stream that are looked at."""


@dataclass(frozen=True, eq=False)
class Turned:
    """A feature of a stream of a recording whose sign is turned against the others."""

    recording: Recording
    stream: str
    feature: int
    before: float
    after: float
    """Share of its squares around the usual level that the other streams tell, as stored and turned."""
    typical: float
    log_chance: float


def turned_in(family: Sequence[Recording]) -> list[list[Turned]]:
    """By feature of a stream the recordings in which it is turned, the surest first, without those that follow.

    What tells a feature is told by it as well: of two features that are turned against each other in the same
    recordings the one with the surer recordings is kept.
    """
    names = sorted(family[0].streams)
    found = [one for name in names for one in _of_stream(family, name, len(names))]
    found.sort(key=lambda some: sum(t.log_chance for t in some))
    kept: list[list[Turned]] = []
    for some in found:
        mine = {t.recording.name for t in some}
        if all(mine.isdisjoint({t.recording.name for t in other}) or other[0].stream == some[0].stream
               for other in kept):
            kept.append(some)
    return kept


def _of_stream(family: Sequence[Recording], name: str, tries: int) -> list[list[Turned]]:
    rows = min(MOST_ROWS, max(SHORTEST, MOST_TOTAL // len(family)))
    parts = [sides(r, name, rows) for r in family]
    xs, ys = [x for x, _ in parts], [y[:, :_EACH] for _, y in parts]
    every = np.concatenate(xs)
    centre, spread = every.mean(axis=0), np.maximum(every.std(axis=0), 1e-12)
    xs = [np.concatenate([np.clip((x - centre) / spread, -6, 6), np.ones((len(x), 1))], axis=1) for x in xs]
    grams = [(x.T @ x, x.T @ y) for x, y in zip(xs, ys, strict=True)]
    gram, cross = sum(g for g, _ in grams), sum(c for _, c in grams)
    said = []
    for x, (own, mine) in zip(xs, grams, strict=True):
        left = gram - own
        weights = np.linalg.solve(left + RIDGE * (np.trace(left) / len(left)) * np.eye(len(left)), cross - mine)
        said.append(x @ weights)
    width = ys[0].shape[1]
    out = []
    for feature in range(width):
        some = _judged(family, name, feature, [(s[:, feature], y[:, feature]) for s, y in zip(said, ys, strict=True)],
                       tries * width)
        if some:
            out.append(some)
    return out


def _judged(family: Sequence[Recording], name: str, feature: int, pairs: Sequence[tuple[Array, Array]], tries: int
            ) -> list[Turned]:
    level = float(np.median(np.concatenate([y for _, y in pairs])))
    told = []
    for s, y in pairs:
        size = float(((y - level) ** 2).mean())
        told.append([1 - float(((sign * y - s) ** 2).mean()) / max(size, 1e-30) for sign in (1, -1)])
    shares = np.array(told)
    usual = shares[:, 0] > shares[:, 1]
    typical = float(np.median(shares[usual, 0])) if usual.any() else 0.0
    if float(usual.mean()) < USUAL or typical < TOLD:
        return []
    sure, likely = [], []
    for recording, (s, y), (before, after) in zip(family, pairs, told, strict=True):
        if 1 - after > ALSO * (1 - before):
            continue
        floor = FLOOR * float(((y - level) ** 2).mean()) + 1e-30
        gain = np.clip(np.log((y - s) ** 2 + floor) - np.log((-y - s) ** 2 + floor), -MOST, MOST)
        chance = chance_of(gain)
        one = Turned(recording, name, feature, before, after, typical, chance + math.log(len(pairs) * tries))
        as_good = after >= AS_GOOD * typical and 1 - after <= LEFT * (1 - before)
        if as_good and one.log_chance < math.log(LEVEL):
            sure.append(one)
        elif chance < math.log(LEVEL):
            likely.append(one)
    out = sure + likely if sure else []
    return sorted(out, key=lambda t: t.recording.name) if len(out) <= MOST_ODD * len(family) else []
