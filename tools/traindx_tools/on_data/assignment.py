"""The assignment of rows to columns with the least cost, exactly."""

from __future__ import annotations

import numpy as np

from traindx_tools.on_data.column import Array


def assigned(cost: Array) -> Array:
    """int64 shape (n,): the column of each row in the cheapest one-to-one assignment of a square cost matrix.

    Shortest augmenting paths with potentials, O(n**3) (Jonker and Volgenant, Computing 38, 1987).
    """
    n = len(cost)
    u, v = np.zeros(n + 1), np.zeros(n + 1)
    match, way = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for row in range(1, n + 1):
        match[0], column = row, 0
        least = np.full(n + 1, np.inf)
        used = np.zeros(n + 1, bool)
        while True:
            used[column] = True
            current = match[column]
            reduced = cost[current - 1] - u[current] - v[1:]
            better = ~used[1:] & (reduced < least[1:])
            least[1:][better] = reduced[better]
            way[1:][better] = column
            free = np.where(used[1:], np.inf, least[1:])
            following = int(np.argmin(free)) + 1
            delta = free[following - 1]
            u[match[used]] += delta
            v[used] -= delta
            least[~used] -= delta
            column = following
            if match[column] == 0:
                break
        while column:
            before = way[column]
            match[column] = match[before]
            column = int(before)
    out = np.empty(n, np.int64)
    out[match[1:] - 1] = np.arange(n)
    return out
