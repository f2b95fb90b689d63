"""One column tells the target of a table nearly alone, and no other comes near.

Such a column is often made from the outcome or written behind it: a date of closing, a code of the bill, a field that
is filled only where the outcome was so. It may as well be an honest measure, so the finding asks and convicts nobody.
What a column tells is measured on rows that were left out: how often each class occurs in each of its ranges, empty
cells being a range of their own, and the area under the curve that this gives. Numbers and names of rows, times, and
columns that are another writing of the target are left out. Of a feature without a name, in an array of features, it is
a remark: what it measures only its maker knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import number, place, rows, short
from traindx_tools.on_data.roles import is_group, is_id_name, is_identifier, is_label, is_target, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

ALONE = 0.95
NEXT = 0.8
COLUMNS = 4
FEWEST = 200
EACH = 30
RANGES = 64
MOST_ROWS = 20_000
MOST_KINDS = 20
WIDEST = 64

RULE = Rule(
    id="D129",
    name="target-alone",
    title="One column tells the target nearly alone",
    severity=Severity.MEDIUM,
    sees="how well each column of a table tells the target by itself, on rows that were left out",
    matters="If the column is known only after the outcome, the model is useless where the outcome is not known yet.",
    alike=(
        "An honest measure that is that strong.",
        "Several strong columns: not told.",
        "The target in another writing, or a number of rows that were sorted: not told.",
        "Classes that are ranges of the column: a bonus class by age. Not told.",
    ),
    confirm=("Ask when the column is filled in: before the outcome, or with it?", "Train without it and compare."),
    thresholds={
        "alone": Threshold(ALONE, "area under the curve", "few honest columns tell so much alone"),
        "next": Threshold(NEXT, "area under the curve", "of the next column: above it several are strong"),
        "columns": Threshold(COLUMNS, "columns", "in fewer none stands out"),
    },
)

_OF_A_FILE = re.compile(r"(^|\.)(bytes|content)$")
"""What a reader tells of a file: a picture's size when packed follows its content, and no model is given it."""


def check(view: View) -> Iterator[Finding]:
    """A finding for the target of each table."""
    for data in view.sets:
        shards = [s for s in data.splits.get("train", data.shards) if s.rows and s.columns]
        if not shards or any(not _scalar(c) and not _is_row(c) for c in shards[0].columns.values()):
            continue
        shard = max(shards, key=lambda s: s.rows)
        for target in _targets(data, shard):
            yield from _of_target(shard, target, data.labels)


def _scalar(column: Column) -> bool:
    return not column.row_shape and column.kind != "sequence" and (column.kind != "text" or column.digests is not None)


def _is_row(column: Column) -> bool:
    """Whether it holds the features of a table side by side."""
    return column.kind == "number" and len(column.row_shape) == 1 and column.row_shape[0] <= WIDEST


def _targets(data: DataSet, shard: Shard) -> list[str]:
    """The fields that are called as targets are; else the last one, where it alone is a label of two kinds."""
    labels = [n for n in data.labels if n in shard.columns and is_label(shard.columns[n])]
    named = [n for n in labels if is_target(n)]
    last = list(shard.columns)[-1:]
    measured = [n for n, c in shard.columns.items() if is_target(n) and c.is_float and not c.row_shape]
    return named[:1] or measured[:1] or [n for n in last if n in labels and len(np.unique(keys(shard.columns[n]))) == 2]


def _of_target(shard: Shard, target: str, labels: tuple[str, ...]) -> Iterator[Finding]:
    values = keys(shard.columns[target])
    if target not in labels:
        values = values > np.nanmedian(values)
    kinds, y = np.unique(values, return_inverse=True)
    counts = np.bincount(y.reshape(-1))
    index = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, MOST_ROWS)).astype(np.int64))
    columns = ((n, _telling(c, target)) for n, c in _by_feature(shard) if n != target)
    beside = {n: c for n, c in columns if c is not None}
    names = list(beside)
    if len(index) < FEWEST or len(kinds) > MOST_KINDS or counts.min() < EACH or len(names) < COLUMNS:
        return
    y = y.reshape(-1)[index]
    told = {n: told_by(_ranges(beside[n], index), y, len(kinds)) for n in names}
    order = sorted(told, key=lambda n: -told[n])
    best, second = order[0], order[1]
    column, empty = beside[best], ""
    if told[best] < ALONE or told[second] > NEXT or _other_writing(column, shard.columns[target]):
        return
    if len(kinds) > 2 and _is_binned(column, shard.columns[target]):
        return
    gaps = column.missing
    if gaps is not None and told_by(gaps[index].astype(np.int64), y, len(kinds)) >= ALONE - 0.02:
        empty = f"; that its cells are empty tells it: {rows(shard, np.flatnonzero(gaps))}"
    yield RULE.finding(
        f"{best} of {short(shard)} tells {target} nearly alone (area under the curve {told[best]:.3f} on rows left "
        f"out, the next is {second} with {number(told[second])}, {len(names)} columns){empty}: was it known before the "
        "outcome?",
        place(shard, best if best in shard.columns else best.partition("[")[0]),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.INFO if best not in shard.columns else None if empty or is_target(target) else Severity.LOW,
        measured={"field": best, "target": target, "auc": told[best], "next": told[second],
                  "kind": "empty-cells" if empty else "values", "shard": short(shard)},
    )


def _by_feature(shard: Shard) -> Iterator[tuple[str, Column]]:
    """The columns, and each feature of those that hold several."""
    for name, column in shard.columns.items():
        if not _is_row(column):
            yield name, column
            continue
        for i in range(column.row_shape[0]):
            yield f"{name}[:, {i}]", Column(f"{name}[:, {i}]", "number", column.by_feature[i], column.file)


def _telling(column: Column, target: str) -> Column | None:
    """The column; of a time or a number of rows only which cells are empty; None of another writing of the target."""
    if target.lower() in column.name.lower() or is_target(column.name) or _OF_A_FILE.search(column.name):
        return None
    if not (is_identifier(column) or is_id_name(column.name) or is_group(column.name)):
        return column
    if column.missing is None or not column.missing.any():
        return None
    return replace(column, kind="number", values=column.missing, offsets=None, digests=None, texts=())


def _ranges(column: Column, index: Array) -> Array:
    """int64 shape (rows,): the range of each value, or which of the frequent values it is."""
    values = keys(column)[index]
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        edges = np.unique(np.quantile(values[finite], np.linspace(0, 1, RANGES))) if finite.any() else np.zeros(1)
        return np.where(finite, np.searchsorted(edges, values, side="right"), -1) + 1
    kinds, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    codes = codes.reshape(-1)
    if len(kinds) <= RANGES:
        return np.asarray(codes)
    if column.kind == "number":
        edges = np.unique(np.quantile(values, np.linspace(0, 1, RANGES)))
        return np.asarray(np.searchsorted(edges, values, side="right"))
    frequent = np.argsort(-counts)[: RANGES - 1]
    place_of = np.full(len(kinds), RANGES - 1)
    place_of[frequent] = np.arange(len(frequent))
    return np.asarray(place_of[codes])


def told_by(ranges: Array, y: Array, kinds: int) -> float:
    """The area under the curve, averaged over classes, of each class's share in a range, by the other half of the rows.

    Halves are drawn at random: of neighbouring rows one may tell the other.
    """
    half = np.random.default_rng(0).permutation(len(y)) % 2
    size, areas = int(ranges.max()) + 1, []
    counts = np.bincount((half * size + ranges) * kinds + y, minlength=2 * size * kinds).reshape(2, size, kinds)
    for own in (0, 1):
        table = np.bincount(y, minlength=kinds) / len(y) + counts[1 - own]
        share = table / table.sum(axis=1, keepdims=True)
        rows = counts[own].sum(axis=1)
        areas += [_area(share[:, k], counts[own][:, k], rows - counts[own][:, k]) for k in range(kinds)]
    return float(np.mean(areas))


def _area(score: Array, positive: Array, negative: Array) -> float:
    """The area under the ROC curve of ranges with a score each, ties counted half (Mann and Whitney).

    `positive`, `negative`: int64 shape (ranges,), the rows of each.
    """
    pairs = int(positive.sum()) * int(negative.sum())
    if not pairs:
        return 0.5
    scores, at = np.unique(score, return_inverse=True)
    true, false = (np.bincount(at.reshape(-1), weights=c, minlength=len(scores)) for c in (positive, negative))
    return float((true * (np.cumsum(false) - 0.5 * false)).sum() / pairs)


def _is_binned(column: Column, target: Column) -> bool:
    """Whether the classes are ranges of the column, in their order: one was made from the other by design."""
    if column.kind != "number" or column.row_shape or target.kind != "number":
        return False
    values, classes = np.asarray(column.values, np.float64), np.asarray(target.values, np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.diff(classes[order])
    return bool(np.isfinite(values).all() and ((steps >= 0).all() or (steps <= 0).all()))


def _other_writing(column: Column, target: Column) -> bool:
    """Whether a column of words has one word for each class, and the class for each word: its name."""
    if column.kind != "text" or target.kind == "text":
        return False
    a, b = (np.unique(keys(c), return_inverse=True)[1].reshape(-1) for c in (column, target))
    pairs: Sequence[int] = np.unique(a * (int(b.max()) + 1) + b).tolist()
    return len(pairs) == int(a.max()) + 1 == int(b.max()) + 1
