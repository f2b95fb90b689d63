"""Which values are changed: of which columns, in which rows, and for what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.experiments.planting.tables import Column, Swap, Table

PLANTS, SPACING = 48, 6
"""Rows that are changed at most, and how far apart they are at least on average."""
DONORS = 24
"""Rows among which the one with another value is chosen."""
QUANTILES = np.linspace(0.02, 0.98, 33)
ALIKE = 0.35
"""Distance of two distributions (standard deviations, or half the sum of the differences of the shares of classes)
above which a column is not looked at as the target."""
NAMED = 0.3
"""What a name that says so is worth beside that distance."""
CLASSES = 200
_TARGET = re.compile(r"(?:^|[_\W])(?:y|labels?|targets?|class(?:es)?|outcome|answer|truth|gt)(?:$|[_\W\d])", re.I)
_PARTS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "holdout"})
Values = NDArray[np.float32]


def plantable(column: Column) -> bool:
    """Whether its values may be changed one by one: no constant, no count or time that orders the rows, no name of a
    row, and not what says which rows are trained on."""
    if column.numbers is None:
        texts = column.texts or ()
        kinds = set(texts)
        sentences = sum(t.count(" ") >= 3 for t in texts[:200]) > len(texts[:200]) / 2
        many = len(kinds) < len(texts) / 2 or sentences
        return len(kinds) > 1 and many and not {t.lower() for t in kinds} <= _PARTS
    there = column.numbers[np.isfinite(column.numbers)]
    if len(there) < 2 or (there == there[0]).all():
        return False
    steps = np.diff(there)
    ordered = (steps >= 0).all() or (steps <= 0).all()
    distinct = len(np.unique(there)) == len(there) and bool((there == np.round(there)).all())
    return not (distinct or (ordered and len(np.unique(there)) > CLASSES))


def targets_among(table: Table, targets: Values) -> list[Column]:
    """The columns that the target may be made of, the likeliest first. `targets`: what the loss was given, (n,)."""
    seen = targets[np.isfinite(targets)].astype(np.float64)
    if len(seen) < 20:
        return []
    found = [(c, distance(c, seen) - NAMED * bool(_TARGET.search(f" {c.name} "))) for c in table.columns
             if plantable(c)]
    return [c for c, d in sorted(found, key=lambda p: p[1]) if d < ALIKE]


def distance(column: Column, seen: NDArray[np.float64]) -> float:
    """How unlike the distribution of a column is to that of the targets, whatever their unit (0: alike)."""
    kinds = len(np.unique(seen))
    if kinds <= CLASSES and (seen == np.round(seen)).all():
        return _of_shares(_shares(column.keys()), _shares(seen))
    if column.numbers is None:
        return 1.0
    values = column.numbers[np.isfinite(column.numbers)]
    forms = [values, *([np.log(values), np.sqrt(values)] if (values > 0).all() else []),
             *([np.log1p(values)] if (values >= 0).all() else [])]
    return min(float(np.abs(_shape(f) - _shape(seen)).mean()) for f in forms)


def _shape(values: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = values.std()
    return np.asarray((np.quantile(values, QUANTILES) - values.mean()) / (spread if spread > 0 else 1.0))


def _shares(keys: NDArray[np.object_] | NDArray[np.float64]) -> list[float]:
    counts = sorted(Counter(keys.tolist()).values(), reverse=True)[:CLASSES + 1]
    return [c / len(keys) for c in counts]


def _of_shares(one: Sequence[float], other: Sequence[float]) -> float:
    longest = max(len(one), len(other))
    padded = [[*s, *[0.0] * (longest - len(s))] for s in (one, other)]
    return float(np.abs(np.subtract(padded[0], padded[1])).sum()) / 2 + (0.2 if len(one) != len(other) else 0.0)


def rows_to_plant(table: Table, seed: int) -> NDArray[np.int64]:
    """Rows spread over the whole table, one at random in each of equal stretches."""
    count = max(1, min(PLANTS, table.rows // SPACING))
    edges = np.linspace(0, table.rows, count + 1)
    rng = np.random.default_rng(seed)
    return np.unique((edges[:-1] + rng.random(count) * np.diff(edges)).astype(np.int64))


def swaps_for(column: Column, rows: NDArray[np.int64], seed: int) -> Swap:
    """For each of these rows one whose value is about a standard deviation above its own: farther ones would move what
    is scaled by all rows. Rows for which there is none are left out."""
    rng = np.random.default_rng(seed)
    keys = column.keys()
    spread = float(np.nanstd(column.numbers)) if column.numbers is not None else 0.0
    found: dict[int, int] = {}
    for row in rows.tolist():
        donors = rng.integers(0, len(keys), DONORS)
        if column.numbers is None:
            other = [int(d) for d in donors if keys[d] != keys[row]]
        else:
            away = column.numbers[donors] - column.numbers[row]  # larger ones only: their targets move one way
            away = np.where(np.isfinite(away) & (away > 0), np.abs(away - spread), np.inf)
            other = [int(donors[away.argmin()])] if np.isfinite(away).any() else []
        if other:
            found[row] = other[0]
    return found
