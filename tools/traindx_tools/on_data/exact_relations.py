"""Linear relations between channels or columns that hold to rounding in nearly all rows, and the rows that break one.

Measured quantities rarely obey an equation by chance: leads of one recording, parts and their sum, a difference beside
its terms. Where such an equation holds to rounding in most rows and fails in the rest, one plain operation (two of them
exchanged, one with its sign turned, one in another unit) that makes it hold again says what happened.

The equation is the direction of least mean square of the rows, each weighted by the inverse of its own square, again
and again (iteratively reweighted least squares, which goes to the most rows with none left); relations that all rows
obey are taken out first, so that those which only some break are found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.column import Array

EXACT = 0.01
"""Root mean square that is left of an equation between numbers of spread 1: rounding, not noise."""
BROKEN = 5.0
"""Times what is left in the rows that obey, at least in one that breaks it."""
MOST = 0.6
"""Share of the rows that obey, at least."""
OBEY, BREAK = 8, 2
"""Rows of each kind, at least."""
ROUNDS = 15
FITTED = 400
"""Rows, evenly spaced, that the relations are taken from; all rows are held against them."""
WIDTH = 40
"""Channels of one group, at most."""


@dataclass(frozen=True)
class Operation:
    """What makes rows obey again."""

    kind: str
    """"exchanged" (two channels), "sign" or "factor" (of one)."""
    channels: tuple[int, ...]
    factor: float = 1.0
    """Of what is stored to what should be."""


@dataclass(frozen=True, eq=False)
class Broken:
    """Rows that break a relation, and the operations under each of which all of them obey."""

    rows: Array
    """int64: places among the rows looked at."""
    operations: tuple[Operation, ...]
    obeying: int
    left: float
    """What is left in the rows that obey (99th of 100), in spreads."""
    terms: tuple[tuple[int, float], ...]
    """The equation told: the first channel is the sum of the others times these, and a constant."""


def broken_relations(x: Array) -> Iterator[Broken]:
    """`x`: float64 shape (rows, samples, channels), finite. Yields at most one for each set of rows.

    Channels without spread take no part.
    """
    if len(x) < OBEY + BREAK:
        return
    centre = np.median(x, axis=(0, 1))
    low, high = np.quantile(x, (0.25, 0.75), axis=(0, 1))
    spread = np.where(high > low, (high - low) / 1.349, np.std(x, axis=(0, 1)))  # of a normal one: its deviation
    live = np.flatnonzero(spread > 1e-9 * (np.abs(centre) + 1e-30))
    if not 2 <= len(live) <= WIDTH:
        return
    centre, spread = centre[live], spread[live]
    z = np.concatenate([(x[:, :, live] - centre) / spread, np.ones((*x.shape[:2], 1))], axis=2)
    some = _gram(z[np.linspace(0, len(z) - 1, min(len(z), FITTED)).astype(np.int64)])
    v = np.stack(_relations(some) or [np.zeros(z.shape[2])], axis=1)
    every = np.sqrt(((z @ v) ** 2).mean(axis=1))
    told: set[bytes] = set()
    for left, one in zip(every.T, v.T, strict=True):
        obey = left < EXACT
        if obey.sum() < max(OBEY, MOST * len(left)):
            continue
        usual = float(np.quantile(left[obey], 0.99))
        rows = np.flatnonzero(left > max(BROKEN * usual, EXACT))
        if len(rows) < BREAK or rows.tobytes() in told:
            continue
        told.add(rows.tobytes())
        if _stands(z[obey], one):
            continue
        found = _mended(_gram(z[rows[:FITTED]]), v, centre, spread)
        target = found[0].channels[0] if found else int(np.argmax(np.abs(one[:-1])))
        equation = _equation(_gram(z[np.flatnonzero(obey)[:FITTED]]), target, spread)
        yield Broken(rows, tuple(replace(o, channels=tuple(int(live[c]) for c in o.channels)) for o in found),
                     int(obey.sum()), usual, tuple((int(live[c]), a) for c, a in equation))


def _stands(obeying: Array, one: Array) -> bool:
    """Whether all that the equation says of most rows is that a channel keeps one value there, as mostly 0."""
    parts = (obeying[:, :, :-1] * one[:-1]).std(axis=(0, 1))
    still = obeying[:, :, :-1].std(axis=(0, 1)) < EXACT
    return bool((parts[~still] < EXACT).all()) and bool((np.abs(one[:-1])[still] > EXACT).any())


def _gram(z: Array) -> Array:
    """float64 shape (rows, channels, channels): the mean products of each row's samples."""
    return np.asarray(z.transpose(0, 2, 1) @ z / z.shape[1])


def _relations(gram: Array) -> list[Array]:
    """Unit vectors, each at right angles to all others, that most rows obey."""
    basis = np.eye(gram.shape[1])
    found: list[Array] = []
    while basis.shape[1] > 1:
        v = basis @ _majority(basis.T @ gram @ basis)
        if (_left(gram, v[:, None]) < EXACT).mean() < MOST:
            break
        found.append(v)
        basis = basis @ np.linalg.svd((basis.T @ v)[None])[2][1:].T
    return found


def _majority(gram: Array) -> Array:
    """The direction with nothing left in the most rows."""
    weights = 1.0 / (np.trace(gram, axis1=1, axis2=2) + 1e-8)  # a row of another scale must not lead
    v = np.zeros(gram.shape[1])
    for _ in range(ROUNDS):
        v = np.linalg.eigh(np.tensordot(weights / weights.sum(), gram, axes=1))[1][:, 0]
        weights = 1.0 / (gram @ v @ v + 1e-8)
    return v


def _left(gram: Array, v: Array) -> Array:
    """float64 shape (rows,): root mean square of what each equation leaves, the largest of them."""
    return np.asarray(np.sqrt(np.maximum(0.0, ((gram @ v) * v).sum(axis=1))).max(axis=1))


def _mended(gram: Array, v: Array, centre: Array, spread: Array) -> list[Operation]:
    """The operations under each of which every row obeys every relation."""
    channels = range(len(centre))
    found = [Operation("exchanged", (a, b)) for a, b in itertools.combinations(channels, 2)
             if _obey_after(_exchange(a, b, centre, spread), gram, v)]
    for c in channels:
        factor = _factor(gram, v, c, float(centre[c] / spread[c]))
        if factor and abs(factor - 1.0) > EXACT and _obey_after(_scaled(c, factor, centre, spread), gram, v):
            found.append(Operation("sign" if abs(factor + 1.0) < EXACT else "factor", (c,), 1.0 / factor))
    return found


def _obey_after(operation: Array, gram: Array, v: Array) -> bool:
    return bool((_left(operation @ gram @ operation.T, v) < 2 * EXACT).all())


def _exchange(a: int, b: int, centre: Array, spread: Array) -> Array:
    """Shape (channels + 1, channels + 1): what the numbers around their centres become where two are exchanged."""
    made = np.eye(len(centre) + 1)
    for one, other in ((a, b), (b, a)):
        made[one] = 0.0
        made[one, other] = spread[other] / spread[one]
        made[one, -1] = (centre[other] - centre[one]) / spread[one]
    return made


def _scaled(c: int, factor: float, centre: Array, spread: Array) -> Array:
    made = np.eye(len(centre) + 1)
    made[c, c], made[c, -1] = factor, (factor - 1.0) * centre[c] / spread[c]
    return made


def _factor(gram: Array, v: Array, c: int, level: float) -> float:
    """By which channel `c` must be multiplied for the least sum of squares; 0: it takes no part.

    `level`: its centre in spreads.
    """
    raw = np.zeros(len(v))
    raw[c], raw[-1] = 1.0, level
    rest = v.copy()
    rest[c] = 0.0
    rest[-1] -= v[c] * level
    total = gram.sum(axis=0)
    both, own = float((raw @ total @ rest) @ v[c]), float((raw @ total @ raw) * (v[c] ** 2).sum())
    return -both / own if own > 1e-12 else 0.0


def _equation(gram: Array, target: int, spread: Array) -> list[tuple[int, float]]:
    """A channel as a sum of as few others as leave nothing, with the factors in their own units; empty: none do."""
    mean = gram.mean(axis=0)
    size = len(mean) - 1
    chosen: list[int] = [size]
    coefficients = np.zeros(1)
    for _ in range(min(4, size - 1)):
        best = min((k for k in range(size) if k != target and k not in chosen),
                   key=lambda k: _unexplained(mean, target, [*chosen, k])[0])
        chosen.append(best)
        left, coefficients = _unexplained(mean, target, chosen)
        if left < EXACT**2:
            break
    else:
        return []
    return [(target, 1.0)] + [(k, float(a * spread[target] / spread[k]))
                              for k, a in zip(chosen[1:], coefficients[1:], strict=True)]


def _unexplained(mean: Array, target: int, by: list[int]) -> tuple[float, Array]:
    inner, cross = mean[np.ix_(by, by)] + 1e-12 * np.eye(len(by)), mean[by, target]
    a = np.linalg.solve(inner, cross)
    return float(mean[target, target] - cross @ a), a
