"""Whether rows of several inputs belong together: what a loss says of them in other orders.

A loss over a batch stays the same where all its inputs are put into another order alike. It may change for good
reasons: rows come in pairs or groups, neighbours are mixed, time runs along them. What no reason is there for: it stays
the same where some inputs are put into another order and the others are not, though each of these inputs alone, and
the others, matter. Then the rows of the ones do not meet the rows of the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST_ROWS, MOST_ROWS = 4, 4096
SAME, OTHER = 1e-5, 1e-3
"""Relative changes of a loss: sums in another order stay below the first, rows that meet others lie above the second.
"""
ORDERS = 2
Outputs = list[NDArray[Any]]


@dataclass(frozen=True)
class Apart:
    """Inputs, by number: rows of `together` meet each other and not those of `alone`. `moved`: by how much the loss
    changes, of its size, where the rows of `alone` are put into another order."""

    together: tuple[int, ...]
    alone: tuple[int, ...]
    moved: float


def apart(step: Callable[[Sequence[Any]], Outputs], values: Sequence[Any], rows: Sequence[int]) -> Apart | None:
    """The largest set of inputs that may be put into another order without the others; None where there is none."""
    base = _scalars(step(values))
    if not base or not all(np.isfinite(base)) or not any(base):
        return None
    count = len(values[rows[0]])
    orders = [np.random.default_rng(n).permutation(count) for n in range(ORDERS)]

    def change(moved: Sequence[int]) -> float:
        return max(_change(base, _scalars(step([v[o] if i in moved else v for i, v in enumerate(values)])))
                   for o in orders)

    matter = [i for i in rows if change((i,)) >= OTHER]
    if len(matter) < 3 or change(matter) < OTHER:
        return None
    for size in range(len(matter) - 1, 1, -1):
        for some in itertools.combinations(matter, size):
            rest = tuple(i for i in matter if i not in some)
            if change(some) <= SAME and (moved := change(rest)) >= OTHER:
                return Apart(some, rest, moved)
    return None


def _scalars(outputs: Outputs) -> list[float]:
    return [float(o) for o in outputs if np.ndim(o) == 0 and np.asarray(o).dtype.kind == "f"]


def _change(before: Sequence[float], after: Sequence[float]) -> float:
    """The largest relative change; infinite where a number is none any more."""
    if not all(np.isfinite(after)):
        return float("inf")
    return max(abs(a - b) / max(abs(a), abs(b), 1e-12) for a, b in zip(before, after, strict=True))
