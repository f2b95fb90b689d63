"""Offsets into a long row of tokens: arrays of growing numbers that end where a file of tokens does.

Each document begins with one token, or the one before ends with one. Where entries point to that token, or just behind
it, nearly everywhere, and beside it in one stretch of them, these are off by as many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import Stretch, heaviest

FEWEST = 30
"""Entries."""
STRETCH = 10
REACH = 4
HOLDS, BROKEN = 0.97, 0.3
"""Share of the entries elsewhere, and of those of the stretch after a move, that point to the mark, at least; and of
those of the stretch as it is, at most."""
RARE = 0.2
"""Share of all tokens, above which a token is no mark of an end."""
MOST_TOKENS = 2**27


@dataclass(frozen=True, eq=False)
class Offsets:
    """The numbers of a field of `shard`, and the tokens that they point into."""

    shard: Shard
    field: str
    values: Array
    into: Shard
    tokens: Array


@dataclass(frozen=True, eq=False)
class Off:
    """Entries `stretch` are `by` too high; the others point `usual` tokens before (below zero) or behind the mark."""

    offsets: Offsets
    mark: int
    by: int
    usual: int
    stretch: Stretch
    here: float
    others: float


def offsets_of(shards: Sequence[Shard]) -> Iterator[Offsets]:
    """Every array that may be one, with the first row of tokens that it fits."""
    rows = [(s, np.asarray(c.values)) for s in shards for c in s.columns.values()
            if c.kind == "number" and not c.row_shape and c.values.dtype.kind in "iu"
            and FEWEST * 2 <= c.rows <= MOST_TOKENS]
    for shard in shards:
        fields = {n: np.asarray(c.values) for n, c in shard.columns.items()
                  if c.kind == "number" and not c.row_shape and c.values.dtype.kind in "iu" and shard.numbers is None}
        for name, values in {**fields, **{n: v for n, v in shard.beside.items() if v.ndim == 1}}.items():
            if _may_be(values):
                into = next(((s, t) for s, t in rows if t is not values and abs(len(t) - int(values[-1])) <= REACH
                             and int(t.max()) < len(t)), None)
                if into is not None:
                    yield Offsets(shard, name, values.astype(np.int64), *into)


def _may_be(values: Array) -> bool:
    if values.dtype.kind not in "iu" or len(values) < FEWEST or int(values[0]) > REACH or int(values[-1]) < len(values):
        return False
    return bool((np.diff(values.astype(np.int64)) >= 0).all())


def off(found: Offsets, comparisons: float) -> Off | None:
    """The stretch that is off, all entries among them; None where they all point to one mark, or to none."""
    inner = found.values[1:-1]
    inner = inner[(inner >= REACH) & (inner < len(found.tokens) - REACH)]
    if len(inner) < FEWEST:
        return None
    moves = range(-REACH, REACH)
    at = {k: found.tokens[inner + k] for k in moves}
    best = max(((k, int(v), n) for k in moves for v, n in [_commonest(at[k])]), key=lambda t: t[2])
    usual, mark = best[0], best[1]
    if float((found.tokens == mark).mean()) > RARE:
        return None
    hits = {k: at[k] == mark for k in moves}
    tried = [_stretch(found, hits, usual, k, mark, comparisons) for k in moves if k != usual]
    odd = [t for t in tried if t is not None]
    return max(odd, key=lambda t: t.stretch.rows, default=None)


def _commonest(values: Array) -> tuple[int, int]:
    kinds, counts = np.unique(values, return_counts=True)
    return int(kinds[counts.argmax()]), int(counts.max())


def _stretch(found: Offsets, hits: dict[int, Array], usual: int, other: int, mark: int, comparisons: float
             ) -> Off | None:
    gain = hits[other].astype(np.float64) - hits[usual]
    stretch = heaviest(gain)
    inside = stretch.inside(len(gain))
    if not STRETCH <= stretch.rows <= len(gain) - STRETCH:
        return None
    here, after, others = (float(h.mean()) for h in (hits[usual][inside], hits[other][inside], hits[usual][~inside]))
    if here > BROKEN or after < HOLDS or others < HOLDS:
        return None
    share = max(float((found.tokens == mark).mean()), 1.0 / len(found.tokens))
    chance = math.log(max(share_tail(int(hits[other][inside].sum()), stretch.rows, share), 1e-300)) + math.log(
        comparisons * 2 * REACH * len(gain) ** 2)
    if chance >= math.log(LEVEL):
        return None
    first, last = stretch.start, stretch.end
    if other == _true(found.tokens, mark):
        usual, other, here, others = other, usual, others, here
        first, last = (0, first) if first > len(gain) - last else (last, len(gain))
    before = 1 + int((found.values[1:-1] < REACH).sum())
    return Off(found, mark, usual - other, usual, Stretch(first + before, last + before), here, others)


def _true(tokens: Array, mark: int) -> int | None:
    """Where the mark stands by the file's own ends: at the beginning of documents, at their end (before the next)."""
    begins, ends = bool(tokens[0] == mark), bool(tokens[-1] == mark)
    return None if begins == ends else 0 if begins else -1
