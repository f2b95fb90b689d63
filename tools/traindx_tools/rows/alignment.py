"""Labels that lie some rows beside their inputs, by other numbers of rows in other parts.

Who drops rows of one of two arrays and keeps them in the other leaves labels that are off by one behind the first
dropped row, by two behind the second, and so on. No single shift explains that. A simple model of the labels as they
are says a little, since wrong labels are no more than noise to it; each block of rows is then moved by the shift that
fits it best, and the model is made anew with the moved labels, until nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_data.tasks import Task, folded

BLOCK, LEAST, FARTHEST, ROUNDS = 50, 300, 8, 5
SKILL, BETTER, TOGETHER = 0.5, 0.6, 0.8
BONUS = 0.1
"""Share of a block's rows that the shift of its neighbours is worth: shifts change seldom."""


@dataclass(frozen=True)
class Piece:
    """Rows `first` to `last` (as they were read) fit their inputs with the labels `shift` rows further on."""

    first: int
    last: int
    shift: int


@dataclass(frozen=True)
class Alignment:
    """Pieces in order; skill (of the way from chance to perfect) of a simple model as it is and after moving."""

    pieces: tuple[Piece, ...]
    before: float
    after: float


def alignment(task: Task) -> Alignment | None:
    """The pieces of the first part of a task; None where one shift, or none, explains all, or nothing does."""
    part = task.parts[0]
    n, kinds = len(part.y), len(task.kinds)
    if n < LEAST or len(part.index) != part.shard.rows:
        return None
    block = np.arange(n) // BLOCK
    shifts = np.zeros(int(block[-1]) + 1, np.int64)
    hits = np.zeros((0, 0))
    for _ in range(ROUNDS):
        said = folded(part, part.y[np.clip(np.arange(n) + shifts[block], 0, n - 1)], kinds).argmax(1)
        hits = _hits(said, part.y, block)
        chosen = _chosen(hits)
        if (chosen == shifts).all():
            break
        shifts = chosen
    counts = np.bincount(block)
    before, after = (float((hits[np.arange(len(s)), s + FARTHEST] * counts).sum() / n) for s in (0 * shifts, shifts))
    chance = task.chance[0]
    own, moved = ((v - chance) / max(1e-9, 1 - chance) for v in (before, after))
    pieces = _pieces(shifts, n)
    large = [p for p in pieces if p.last - p.first + 1 >= 2 * BLOCK]
    explained = sum(p.last - p.first + 1 for p in large)
    if moved < SKILL or own > BETTER * moved or explained < TOGETHER * n or len({p.shift for p in large}) < 2:
        return None
    return Alignment(tuple(large), own, moved)


def _hits(said: NDArray[np.int64], y: NDArray[np.int64], block: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shape (blocks, shifts): the share of a block's rows whose answer is the label that many rows on."""
    n, counts = len(y), np.bincount(block)
    out = np.zeros((len(counts), 2 * FARTHEST + 1))
    for k, shift in enumerate(range(-FARTHEST, FARTHEST + 1)):
        at = np.arange(n) + shift
        inside = (at >= 0) & (at < n)
        equal = np.zeros(n)
        equal[inside] = said[inside] == y[at[inside]]
        out[:, k] = np.bincount(block, equal) / counts
    return out


def _chosen(hits: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best shift of each block where staying with the one before is worth a bonus (the cheapest way, Viterbi)."""
    best = hits[0].copy()
    came = np.zeros(hits.shape, np.int64)
    for b in range(1, len(hits)):
        jump = int(best.argmax())
        stay = best + BONUS
        came[b] = np.where(stay >= best[jump], np.arange(len(best)), jump)
        best = np.maximum(stay, best[jump]) + hits[b]
    path = [int(best.argmax())]
    for b in range(len(hits) - 1, 0, -1):
        path.append(int(came[b, path[-1]]))
    return np.array(path[::-1]) - FARTHEST


def _pieces(shifts: NDArray[np.int64], n: int) -> list[Piece]:
    ends = [*(np.flatnonzero(np.diff(shifts)) + 1).tolist(), len(shifts)]
    starts = [0, *ends[:-1]]
    return [Piece(a * BLOCK, min(b * BLOCK, n) - 1, int(shifts[a])) for a, b in zip(starts, ends, strict=True)]
