"""Two columns have changed places in one file: each is distributed as the other is elsewhere.

For each number of a row the values of one file are laid against those of its siblings (two-sample Kolmogorov-Smirnov).
Told is only an exchange that is complete: both differ from themselves beyond doubt, and neither from the other. Where
files have levels of their own (towns, sites), ranges tell: the two columns share no value in any sibling, and in one
file each lies where the other one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, distance, distance_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 50
MOST_ROWS = 2000
MOST_FEATURES = 128
MOST_PIXELS = 2**16
"""Values of a picture whose colours are averaged."""
APART = 0.2
ALIKE = 0.01
SIBLINGS = 3
WIDER = 1.0
"""Of a column's range over all siblings: by so much a file may pass it; two columns lie apart by twice as much."""
NARROW = 1e-6
"""Of its values: a range below is rounding."""

RULE = Rule(
    id="D126",
    name="columns-exchanged",
    title="Two columns have changed places in one file",
    severity=Severity.HIGH,
    sees="the distribution of each column of a file against those of all columns of its siblings",
    matters="The model reads one quantity as another.",
    alike=("A source of another level: its columns are like none of the others.", "Columns that are alike anyway."),
    confirm=("Print the first rows of the file beside those of a sibling.",),
    thresholds={
        "apart": Threshold(APART, "distance of the distributions", "at least, of each column to itself elsewhere"),
        "alike": Threshold(ALIKE, "probability", "above which it is not told from the other one elsewhere"),
        "rows": Threshold(FEWEST, "rows", "of the file and of its siblings"),
        "siblings": Threshold(SIBLINGS, "siblings", "whose ranges tell"),
        "wider": Threshold(WIDER, "of a range", "by which a file may pass one; columns lie apart by twice as much"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all files and pairs of columns"),
    },
)


@dataclass(frozen=True, eq=False)
class _Features:
    """Names and values (rows, features) of the numbers of some rows."""

    names: tuple[str, ...]
    values: Array


def check(view: View) -> Iterator[Finding]:
    """A finding for each file and exchanged pair."""
    for data in view.sets:
        made = [(s, f) for s in data.shards if s.rows >= FEWEST and (f := _features(data, s)) is not None]
        for at, (shard, own) in enumerate(made):
            others = [f for k, (_, f) in enumerate(made) if k != at and f.names == own.names]
            if others and len(own.names) >= 2:
                yield from _of_shard(shard, own, others, view.comparisons)


def _features(data: DataSet, shard: Shard) -> _Features | None:
    names: list[str] = []
    values: list[Array] = []
    some = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, MOST_ROWS)).astype(np.int64))
    for name, column in shard.columns.items():
        means = _channel_means(column, some)
        if means is not None and name not in data.labels:
            names += [f"{name}[channel {k}]" for k in range(means.shape[1])]
            values.append(means)
            continue
        width = int(np.prod(column.row_shape))
        if column.kind != "number" or name in data.labels or width < 1 or len(column.row_shape) > 1:
            continue
        if len(names) + width > MOST_FEATURES or column.values.dtype.kind not in "iuf" or is_identifier(column):
            continue
        names += [name] if not column.row_shape else [f"{name}[{k}]" for k in range(width)]
        values.append(column.values[some].astype(np.float64).reshape(len(some), width))
    return _Features(tuple(names), np.concatenate(values, axis=1)) if values else None


def _channel_means(column: Column, some: Array) -> Array | None:
    """float64 (rows, 3): the mean of each colour of pictures, whose first or last axis holds three; None for others."""
    shape = column.row_shape
    if column.kind != "number" or len(shape) != 3 or column.values.dtype.kind not in "iuf":
        return None
    if (shape[0] == 3) == (shape[2] == 3) or int(np.prod(shape)) > MOST_PIXELS:
        return None
    axes = (2, 3) if shape[0] == 3 else (1, 2)
    return np.asarray(column.values[some].mean(axis=axes, dtype=np.float64))


def _of_shard(shard: Shard, own: _Features, others: list[_Features], comparisons: int) -> Iterator[Finding]:
    mine = [_finite(own.values[:, k]) for k in range(len(own.names))]
    theirs = [_finite(np.concatenate([o.values[:, k] for o in others])) for k in range(len(own.names))]
    level = LEVEL / (comparisons * len(mine) ** 2)
    moved = []
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if min(len(a), len(b)) >= FEWEST:
            apart = distance(a, b)
            if apart >= APART and distance_tail(apart, len(a), len(b)) < level:
                moved.append(k)
    crossed = list(_by_range(mine, [[_finite(o.values[:, k]) for k in range(len(mine))] for o in others]))
    if crossed:
        yield from (_finding(shard, own.names[a], own.names[b], len(others)) for a, b in crossed)
        return
    if len(moved) > max(4, len(mine) // 2):  # all is otherwise there: another source
        return
    like = {k: [j for j in moved if j != k and _alike(mine[k], theirs[j])] for k in moved}
    for k in moved:
        if len(like[k]) == 1 and like[k][0] > k and like[like[k][0]] == [k]:
            sound = [o for o in others if all(_itself(o, theirs, j) for j in (k, like[k][0]))]
            if len(sound) == len(others):
                yield _finding(shard, own.names[k], own.names[like[k][0]], len(others))


def _by_range(mine: list[Array], others: list[list[Array]]) -> Iterator[tuple[int, int]]:
    """Pairs of columns whose ranges lie apart in all siblings, and that stand in each other's range in this file."""
    if len(others) < SIBLINGS or any(len(v) < FEWEST for o in others for v in o) or any(len(v) < FEWEST for v in mine):
        return
    ranges = [(min(float(o[k][0]) for o in others), max(float(o[k][-1]) for o in others)) for k in range(len(mine))]
    for a in range(len(mine)):
        for b in range(a + 1, len(mine)):
            (la, ha), (lb, hb) = ranges[a], ranges[b]
            apart = max(la, lb) - min(ha, hb)
            if min((h - w) - NARROW * max(abs(h), abs(w)) for w, h in (ranges[a], ranges[b])) <= 0:
                continue
            if apart <= 2 * WIDER * max(ha - la, hb - lb):
                continue
            if _within(mine[a], ranges[b]) and _within(mine[b], ranges[a]):
                yield a, b


def _within(values: Array, limits: tuple[float, float]) -> bool:
    wide = WIDER * (limits[1] - limits[0])
    return bool(values[0] >= limits[0] - wide and values[-1] <= limits[1] + wide)


def _itself(other: _Features, theirs: list[Array], k: int) -> bool:
    """Whether a sibling's column is as that of all siblings: where each file has its own level nothing is told."""
    values = _finite(other.values[:, k])
    return len(values) < FEWEST or distance(values, theirs[k]) < APART / 2


def _finite(values: Array) -> Array:
    return np.sort(values[np.isfinite(values)])


def _alike(a: Array, b: Array) -> bool:
    return min(len(a), len(b)) >= FEWEST and distance_tail(distance(a, b), len(a), len(b)) > ALIKE


def _finding(shard: Shard, one: str, other: str, siblings: int) -> Finding:
    return RULE.finding(
        f"{one} and {other} have changed places in {short(shard)}: each is distributed there as the other is in the "
        f"{siblings} sibling{'s' * (siblings != 1)}, and not as itself",
        place(shard, one.partition("[")[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": one, "other": other, "kind": "exchanged", "shard": short(shard)},
    )
