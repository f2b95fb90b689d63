"""Rows of a data set apart from records of a training, where both have a column with the name of a metric.

Essays with their "score", answers with their "reward": such rows stand in no order. What a training records follows a
step, an epoch or a time, and what it measures at one place is like what it measured right before, or moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import columns
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.run import Floats

FEWEST = 30
"""Rows below which chance looks like an order, and the other way round."""

MOST = 2_000
"""Rows that are looked at."""

NOTE = "its rows follow no step, epoch or time, and no metric in it moves like one: taken for data and not read"

_CHANCE = 2.5
"""Standard deviations of the correlation of numbers in no order (1 / sqrt(rows)): beyond, there is one."""


def are_data(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> bool:
    """Whether no column that would make a log of a table is in any order, and most columns are none of a log.

    `rows`: cells by the place of their names. A table of metrics alone is a log, whatever they do: a run that does not
    learn has such metrics as well. So is one with a step, epoch or time that goes up or down.
    """
    if columns.is_long(names):
        return False
    telling = [i for i, name in enumerate(names) if _tells(name)]
    if not telling or 2 * len(telling) >= len(names):
        return False
    kept = [row for row, _ in zip(rows, range(MOST), strict=False)]
    orders = [_has_order(_numbers(row[i] for row in kept if i < len(row))) for i in telling]
    return False in orders and True not in orders


def said(source: Source) -> frozenset[str]:
    """What a person says that names of this source stand for: it is a log then."""
    return frozenset(getattr(source, "names", {}).values())


def _tells(name: str) -> bool:
    """Whether a column has the name of a place in a run or of an outcome."""
    kind = columns.role(name)
    if kind is not columns.METRIC:
        return kind in (columns.STEP, columns.EPOCH, columns.TIME)
    found = identify(name)
    return found.known and found.measured


def _numbers(cells: Iterable[Any]) -> Floats:
    read = (columns.number(cell) if columns.number(cell) is not None else columns.moment(cell) for cell in cells)
    return np.array([v for v in read if v is not None and not math.isnan(v)], dtype=np.float64)


def _has_order(values: Floats) -> bool | None:
    """Whether numbers follow from those before them or from their place; None where too few or all equal ones say."""
    if len(values) < FEWEST or not (values != values[0]).any():
        return None
    ranks = _ranks(values)
    most = _CHANCE / math.sqrt(len(values))
    beside = max(abs(_correlation(ranks[:-lag], ranks[lag:])) for lag in (1, 2, 3))
    return beside > most or abs(_correlation(ranks, np.arange(len(ranks), dtype=np.float64))) > most


def _ranks(values: Floats) -> Floats:
    """The place of each number among all of them; equal ones share theirs."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[at.ravel()], dtype=np.float64)


def _correlation(one: Floats, other: Floats) -> float:
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one ** 2).sum() * (other ** 2).sum()))
    return float((one * other).sum()) / size if size else 0.0
