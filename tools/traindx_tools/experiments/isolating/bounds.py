"""How many runs a search needs at least: each has two answers, so k of n culprits take log2 of n over k."""

from __future__ import annotations

from math import ceil, comb, log2


def fewest_runs(items: int, culprits: int = 1) -> int:
    """Runs that no search can do without in the worst case: ceil(log2 C(n, k)); 0 where there is nothing to choose.

    For one culprit that is ceil(log2 n), for few among many about k log2(n / k) (Du and Hwang, Combinatorial Group
    Testing, 1993). The two controls are not counted.
    """
    if not 0 < culprits < items:
        return 0
    return ceil(log2(comb(items, culprits)) - 1e-9)
