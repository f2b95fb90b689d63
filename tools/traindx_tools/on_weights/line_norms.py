"""Lines of matrices of one block that belong together: what makes a unit and what reads it.

Training gives a unit large weights on both of its sides: the norms of the rows that make the hidden units of an MLP
rise and fall with those of the columns that read them, and so do values and outputs of attention, gates and what they
gate, queries and keys. Which lines belong together is asked of all blocks of a stack; no name and no layout is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.freshness import MOST_BYTES, freshness, matrix_of
from traindx_tools.on_weights.seen import Stack

FEWEST_LINES, FEWEST_BLOCKS = 32, 4
HOLDS, USUAL = 0.4, 0.5
"""Rank correlation in every other block, and in their middle, from which on lines belong together."""
ERRORS, SPREADS = 6.0, 5.0
"""Standard errors, and times the usual scatter of the blocks, by which one is below the middle."""
_NONE = 2.5
"""Standard errors within which a correlation is none."""
_FLOOR = 0.06
Vector = NDArray[np.float64]
Lines = tuple[int, int]
"""A kind of matrix of the blocks, and the axis whose lines are meant: 0 rows, 1 columns."""


@dataclass(frozen=True)
class Relation:
    """Two kinds of lines that belong together, with the correlation in each block and the errors of the odd one."""

    one: Lines
    other: Lines
    correlations: tuple[float, ...]
    odd: int | None
    errors: float


def ranks_of(stacks: Sequence[Stack]) -> Mapping[Lines, Sequence[Vector]] | None:
    """Ranks of the norms of the lines of each kind, by block; None where a matrix is not whole, small or too large."""
    found: dict[Lines, list[Vector]] = {}
    for kind, stack in enumerate(stacks):
        if len(stack.members[0].tensor.shape) != 2 or stack.members[0].tensor.nbytes > MOST_BYTES:
            continue
        for stats in stack.members:
            values = matrix_of(stats)
            fresh = freshness(values) if values is not None else None
            if values is None or fresh is None:
                return None
            for axis in (0, 1):
                norms = np.zeros(0) if fresh.drawn else np.linalg.norm(values, axis=1 - axis)
                found.setdefault((kind, axis), []).append(_ranked(norms))
    return found


def _ranked(values: Vector) -> Vector:
    """Ranks, in units of their deviation; nothing where many are equal."""
    if len(values) < FEWEST_LINES or len(np.unique(values)) < 0.9 * len(values):
        return np.zeros(0)
    ranks = np.argsort(np.argsort(values)).astype(np.float64)
    return np.asarray((ranks - ranks.mean()) / ranks.std())


def relations(ranks: Mapping[Lines, Sequence[Vector]]) -> Iterator[Relation]:
    """Kinds of lines that belong together in all blocks, or in all but one."""
    for one, other in combinations(ranks, 2):
        pairs = list(zip(ranks[one], ranks[other], strict=True))
        if one[0] == other[0] or len(pairs) < FEWEST_BLOCKS or any(len(a) != len(b) for a, b in pairs if len(a) and len(
                b)):
            continue
        told = [correlation(a, b) for a, b in pairs]
        known = [r for r in told if math.isfinite(r)]
        if len(known) >= FEWEST_BLOCKS:
            found = _relation(one, other, told, max(len(a) for a, _ in pairs))
            if found is not None:
                yield found


def correlation(one: Vector, other: Vector) -> float:
    """Of ranks; nan where they are not to be had."""
    return float((one * other).mean()) if len(one) == len(other) > 0 else math.nan


def _relation(one: Lines, other: Lines, told: Sequence[float], lines: int) -> Relation | None:
    least = min(range(len(told)), key=lambda i: told[i] if math.isfinite(told[i]) else math.inf)
    rest = [r for i, r in enumerate(told) if i != least and math.isfinite(r)]
    if min(rest) < HOLDS or float(np.median(rest)) < USUAL:
        return None
    z = np.arctanh(np.clip(rest, -0.99, 0.99))
    middle, scatter = float(np.median(z)), max(_FLOOR, 1.4826 * float(np.median(np.abs(z - np.median(z)))))
    gap = middle - math.atanh(max(-0.99, told[least]))
    errors = gap * math.sqrt((lines - 3) / 1.06)
    lost = told[least] < _NONE / math.sqrt(lines) and errors >= ERRORS and gap >= SPREADS * scatter
    if not lost and told[least] < HOLDS:
        return None
    return Relation(one, other, tuple(told), least if lost else None, errors if lost else 0.0)
