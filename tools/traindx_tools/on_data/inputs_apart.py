"""Whether the inputs of one part are of another kind than those of all others: then its labels are not the fault.

Labels that were exchanged or shifted leave the inputs as they are: within each class, as the labels are once that is
undone, no simple model tells the inputs of such a part from those of the others better than it tells any other part, by
its recorder or its day. Where it does, the inputs were changed, or are something else altogether, and what a model of
the others makes of them tells nothing of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.tasks import solved

FURTHEST, LEAST = 2.0, 0.5
"""Times the distance of the furthest other part, and spreads within a part, from which a part stands apart."""
EACH = 5
"""Rows of a class among the others that have a mean."""
ROWS, OTHERS = 20, 2
"""Rows of a part, and parts beside the one: less have no distance among each other."""
AXES = 32
MOST = 8_000
"""Rows that are looked at."""


def inputs_apart(x: Array, classes: Array, parts: Sequence[Array], at: int) -> bool:
    """Whether part `at` stands apart. x: (rows, features); classes: (rows,), in the part what its labels are said to
    mean; parts: the places of the rows of each."""
    step = max(1, sum(map(len, parts)) // MOST)
    kept = [np.asarray(p)[::step] for p in parts]
    mine, others = kept[at], [p for k, p in enumerate(kept) if k != at and len(p) >= ROWS]
    if len(others) < OTHERS or len(mine) < ROWS:
        return False
    own = distance(x, classes, mine, np.concatenate(others))
    if own < LEAST:
        return False
    return all(own > FURTHEST * distance(x, classes, p, np.concatenate([o for o in others if o is not p]))
               for p in others)


def blocks_beside(rows: int, start: int, end: int) -> tuple[list[Array], int]:
    """The rows of a file in blocks as long as a stretch, three at least beside it, and which of them the stretch is."""
    outside = np.concatenate([np.arange(start), np.arange(end, rows)])
    count = max(OTHERS + 1, len(outside) // max(1, end - start))
    return [*np.array_split(outside, count), np.arange(start, end)], count


def distance(x: Array, classes: Array, mine: Array, others: Array) -> float:
    """How far a linear model of half of the rows puts a part from the others, in spreads of the other half."""
    at = np.concatenate([mine, others])
    inside = np.arange(len(at)) < len(mine)
    rows = x[at].astype(np.float64)
    for kind in np.unique(classes[at]):
        here = classes[at] == kind
        rest = here & ~inside
        rows[here] -= rows[rest].mean(axis=0) if rest.sum() >= EACH else rows[here].mean(axis=0)
    rows = _main(rows)
    told = np.where(inside, 0.5 / len(mine), -0.5 / len(others)) * len(at)
    weight = np.where(inside, 0.5 / len(mine), 0.5 / len(others)) * len(at)
    found = []
    for half in (0, 1):
        fit = np.arange(len(at)) % 2 == half
        weighted = rows[fit] * weight[fit, None]
        score = rows[~fit] @ solved(weighted.T @ rows[fit], (rows[fit].T @ told[fit])[:, None]).reshape(-1)
        one, other = score[inside[~fit]], score[~inside[~fit]]
        spread = float(np.sqrt(0.5 * (one.var() + other.var())))
        found.append((float(one.mean()) - float(other.mean())) / spread if spread > 0 else 0.0)
    return min(found)


def _main(rows: Array) -> Array:
    """The directions in which rows differ most: of many features a linear model learns rows by heart."""
    if rows.shape[1] <= AXES:
        return rows
    _, axes = np.linalg.eigh(rows.T @ rows)
    return np.asarray(rows @ axes[:, -AXES:])
