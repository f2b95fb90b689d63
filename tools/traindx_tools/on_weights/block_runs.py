"""A run of blocks, or the blocks of one shard file, that stands apart from the blocks before and behind it in several
kinds of tensors at once.

What changes with depth drifts from block to block. What is of another step jumps at its edges and nowhere else, in all
kinds alike and on both sides. So the steps at an edge are held against all others of the same kinds, each kind weighed
by how little it scatters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TIMES, _TIMES_ALONE, _QUANTILE = 4.0, 6.0, 0.9
"""Times nine tenths of the steps elsewhere that an edge has: where a file begins and ends there, and where none does or
it has one edge and there are fewer than `_MANY` steps.
"""
_MANY = 7
_LEAST, _LEAST_ALONE = 0.25, 0.4
"""Octaves of an edge, at least."""
_INSIDE = 5
"""Steps elsewhere, at least."""
_FLOOR = 0.03
"""Octaves that a kind scatters from block to block, at least."""
_ALIKE = 0.7
"""Share of the kinds, by weight, that jump to the same side."""
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """Blocks that stand apart."""

    first: int
    last: int
    """Positions in the sequence of blocks, both in the run."""
    octaves: float
    """How far above the others, in powers of two."""
    usual: float
    """Nine tenths of the steps elsewhere are smaller."""
    file: str
    """The file that holds just these, "" where files have no part in it."""


def apart(values: Table, files: Sequence[Sequence[str]]) -> Run | None:
    """The one run. `values`: logarithms to base 2, (kinds, blocks); `files`: where each of them lies."""
    kinds, blocks = values.shape
    if kinds < 2 or blocks < _INSIDE + 2 or not np.isfinite(values).all():
        return None
    steps = np.diff(values, axis=1)
    steps = steps - np.median(steps, axis=1, keepdims=True)  # the drift with depth
    spread = 1.4826 * np.median(np.abs(steps), axis=1)
    weight = 1 / np.maximum(spread, _FLOOR) ** 2
    weight /= weight.sum()
    mean = weight @ steps
    by_file = _by_file(files)
    found = [r for r in (_judged(mean, steps, weight, first, last, by_file.get((first, last), ""), blocks)
                         for first, last in _runs(blocks)) if r is not None]
    named = [r for r in found if r.file]
    chosen = named or found
    return chosen[0] if len(chosen) == 1 else _of_two(chosen, blocks)


def _of_two(found: Sequence[Run], blocks: int) -> Run | None:
    """Of two files with one edge between them the one nearer to the beginning of training is meant: the lower one."""
    if len(found) == 2 and found[0].last + 1 == found[1].first and found[0].first == 0 and found[1].last == blocks - 1:
        return min(found, key=lambda r: r.octaves)
    return None


def _by_file(files: Sequence[Sequence[str]]) -> Mapping[tuple[int, int], str]:
    """Runs of blocks all kinds of which lie in one file that holds no other block as a whole."""
    own = [{kind[at] for kind in files} for at in range(len(files[0]))]
    names = [next(iter(f)) if len(f) == 1 else "" for f in own]
    if len(set(names) - {""}) < 2:
        return {}
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        if name:
            found.setdefault(name, []).append(at)
    return {(at[0], at[-1]): n for n, at in found.items() if at == list(range(at[0], at[-1] + 1))}


def _runs(blocks: int) -> list[tuple[int, int]]:
    """Each run of up to half of the blocks, and what is left before or behind one."""
    return [(a, b) for a in range(blocks) for b in range(a, blocks)
            if b - a + 1 < blocks and (b - a + 1 <= blocks // 2 or a == 0 or b == blocks - 1)]


def _judged(mean: Table, steps: Table, weight: Table, first: int, last: int, file: str, blocks: int) -> Run | None:
    edges = [(at, sign) for at, sign in ((first - 1, 1), (last, -1)) if 0 <= at < blocks - 1]
    jumps = [float(sign * mean[at]) for at, sign in edges]
    if not file and len(edges) < 2:
        return None
    inside = np.delete(mean, [at for at, _ in edges])
    if len(inside) < _INSIDE or not (min(jumps) > 0 or max(jumps) < 0):
        return None
    usual = float(np.quantile(np.abs(inside), _QUANTILE))
    least = min(abs(j) for j in jumps)
    alike = min(float(weight @ (np.sign(steps[:, at]) == np.sign(mean[at]))) for at, _ in edges)
    sure = file and (len(edges) == 2 or len(inside) >= _MANY)
    limit = max(_LEAST if file else _LEAST_ALONE, (_TIMES if sure else _TIMES_ALONE) * usual)
    if least < limit or alike < _ALIKE or np.abs(inside).max() > least / 2 or not math.isfinite(least):
        return None
    return Run(first, last, float(np.mean(jumps)), usual, file)
