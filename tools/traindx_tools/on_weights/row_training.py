"""Whether the last rows of a table were trained as the others: by their norms and by how near their nearest row lies.

Rows that are drawn by an initialiser have the norm of draws and no row near them; trained rows of tokens that occur
alike lie close together. Padding and rows that were added later are zero, equal to each other, or draws.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.statistics import Stats

MOST_VALUES = 2**25
MOST_OTHERS = 4_000
"""Rows of which the nearest is looked for, and among which it is."""
FEWEST = 24
SURE, DRAWS = 0.99, 20
"""Share of draws without any structure that have no nearer row, and how many tables are drawn."""
WITHIN = (0.02, 0.98)
"""Quantiles of the others' norms that a row lies between."""


class Trained(Enum):
    """What the rows tell."""

    YES = "yes"
    NO = "no"
    UNTOLD = "untold"


def last_rows(stats: Stats, count: int) -> Trained:
    """Of the last `count` rows of a table: trained as all others, all of them; untrained, one at least; or untold."""
    rows = stats.tensor.shape[0]
    if stats.size > MOST_VALUES or rows - count < FEWEST or stats.nan or stats.inf:
        return Trained.UNTOLD
    table = np.asarray(stats.tensor.load(), np.float64).reshape(rows, -1)
    norms = np.linalg.norm(table, axis=1)
    tail, others = norms[-count:], norms[:-count]
    if (tail == 0).any() or len(np.unique(table[-count:], axis=0)) < count:
        return Trained.NO
    low, high = np.quantile(others, WITHIN)
    draws = _of_draws(min(rows, MOST_OTHERS), table.shape[1])
    alike = (tail >= low) & (tail <= high)
    for centred in (False, True):  # what all rows have in common makes draws look alike once it is taken away
        near, usual = _nearest(table, norms, count, centred)
        if float(np.quantile(usual, 0.25)) <= draws:  # rows lie apart as draws do: nothing to tell them by
            return Trained.UNTOLD
        alike &= (near > draws) & (near >= np.quantile(usual, WITHIN[0]))
    return Trained.YES if alike.all() else Trained.NO


def _nearest(table: NDArray[np.float64], norms: NDArray[np.float64], count: int, centred: bool
             ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosine of the nearest row that is none of the last ones: of the last `count` rows, and of (some of) the others.
    """
    some = np.flatnonzero(norms[:-count] > 0)
    some = some[:: max(1, -(-len(some) // MOST_OTHERS))]
    chosen = np.concatenate([table[some], table[-count:]])
    chosen = chosen - chosen.mean(axis=0) if centred else chosen
    chosen /= np.maximum(np.linalg.norm(chosen, axis=1, keepdims=True), 1e-300)
    cosines = chosen @ chosen[:-count].T
    np.fill_diagonal(cosines, -1.0)
    best = cosines.max(axis=1)
    return best[-count:], best[:-count]


def _of_draws(rows: int, width: int) -> float:
    """The cosine that the nearest of so many draws reaches in one of a hundred."""
    rng = np.random.default_rng(0)
    others = rng.standard_normal((rows, width))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    probes = rng.standard_normal((DRAWS * 20, width))
    probes /= np.linalg.norm(probes, axis=1, keepdims=True)
    return float(np.quantile((probes @ others.T).max(axis=1), SURE))
