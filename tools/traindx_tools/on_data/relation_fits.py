"""How far each number is from what the rest of its row says, by a model of all other parts of the rows.

One inverse of the features' products for each part that is left out holds the ridge regressions of every atom on all
features that it has no share in: x M[:, S] = (x_S - E[x_S | rest]) M[S, S], where M is that inverse and S the atom's
own features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.relation_atoms import Design

RIDGE = 0.003
"""Penalty, as a share of the mean diagonal."""
FEWEST = 40
"""Rows of a part."""
VARIES = 0.05
"""Of the variance of all rows, at least that of a part: of numbers that stand still nothing is told."""
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Fits:
    """The parts of one cut. `told`: float64 shape (parts, atoms), NaN of what stands still there."""

    design: Design
    inside: Mapping[int, Array]
    """int64: the rows of each part that is large enough."""
    inverse: Mapping[int, Array]
    left: Mapping[int, Array]
    """float64 shape (rows, atoms): what the model of the others leaves of each number."""
    told: Mapping[int, Array]


def fits_of(design: Design, member: Array, parts: int) -> Fits:
    """The models. `member`: int64 shape (rows,), -1 for none."""
    groups = {p: np.flatnonzero(member == p) for p in range(-1, parts)}
    grams = {p: design.x[i].T.astype(np.float64) @ design.x[i] for p, i in groups.items() if len(i)}
    whole = np.sum(list(grams.values()), axis=0)
    inside = {p: i for p, i in groups.items() if p >= 0 and len(i) >= FEWEST}
    inverse = {p: inverted(whole - grams[p]) for p in inside}
    left = {p: np.stack([left_of(design, t, design.x[i], inverse[p]) for t in range(len(design.records.atoms))], axis=1)
            for p, i in inside.items()}
    told = {p: np.array([told_of(own(design, t, i), left[p][:, t], usual_variance(design, t))
                         for t in range(len(design.records.atoms))]) for p, i in inside.items()}
    return Fits(design, inside, inverse, left, told)


def inverted(gram: Array) -> Array:
    """The inverse with a penalty."""
    return np.asarray(np.linalg.inv(gram + (RIDGE * np.trace(gram) / len(gram) + 1e-6) * np.eye(len(gram))))


def left_of(design: Design, atom: int, x: Array, inverse: Array, without: Sequence[int] = ()) -> Array:
    """float64 shape (rows,): what the model that an inverse holds leaves of an atom's number, in its spreads.

    `without`: atoms that must say nothing of it.
    """
    own_features = np.flatnonzero(design.owners[[atom, *without]].any(axis=0))
    block = np.linalg.inv(inverse[np.ix_(own_features, own_features)])
    at = int(np.flatnonzero(own_features == design.first[atom])[0])
    return np.asarray(x @ (inverse[:, own_features] @ block[:, at]))


def own(design: Design, atom: int, rows: Array) -> Array:
    """An atom's number in these rows, in its spreads."""
    return np.asarray(design.x[rows, design.first[atom]], np.float64)


def usual_variance(design: Design, atom: int) -> float:
    """Of an atom's number over all rows."""
    return float(design.x[:, design.first[atom]].var())


def told_of(number: Array, left: Array, usual: float) -> float:
    """Share of a part's variance that is told, its level left out; NaN where it hardly varies."""
    variance = float(number.var())
    return 1.0 - float(left.var()) / variance if variance > VARIES * usual else np.nan


def told_by_itself(design: Design, atom: int, rows: Array) -> float:
    """The same by models of a part's own rows, of four fifths each; folds are stretches of neighbours."""
    x = design.x[rows]
    fold = np.arange(len(rows)) * 4 * FOLDS // len(rows) % FOLDS
    grams = [x[fold == k].T.astype(np.float64) @ x[fold == k] for k in range(FOLDS)]
    whole = np.sum(grams, axis=0)
    left = np.empty(len(rows))
    for k in range(FOLDS):
        out = fold == k
        gram = whole - grams[k]
        gram = gram + 0.02 * np.trace(gram) / len(gram) * np.eye(len(gram))
        left[out] = left_of(design, atom, x[out], np.linalg.inv(gram))
    number = own(design, atom, rows)
    return 1.0 - float(left.var()) / max(1e-12, float(number.var()))
