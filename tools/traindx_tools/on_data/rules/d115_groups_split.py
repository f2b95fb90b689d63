"""Rows of one subject, document or recording are in training and in held-out data.

Told of fields that are called so, and of ids of any name with many values of a few rows each. The split is that of the
file, or of each row where a column names it, as a manifest's does, or a file of row numbers. Whether it matters
depends on how alike the rows of one group are: that is measured as the share of the features' variance, and of the
labels', that lies between groups (intraclass correlation), and where it is small the finding is a remark; so it is
where two ids are crossed, as users and items are. That held-out rows lie between the training rows in time is a remark
as well: it depends on the question. Where the split is by time, and a part of one training file alone lies within the
time of the held-out data, it is no question.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.features import raw_features
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import input_fields, is_group, is_id_name, is_identifier, is_time, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, f_tail
from traindx_tools.on_data.split_columns import by_column
from traindx_tools.on_data.split_files import by_rows
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.time_splits import DEEP, FEWEST, OTHERS, Late, late_rows
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

OVERLAP = 0.1
GROUPS = 8
ROWS_PER_GROUP = 2.0
ALIKE = 0.1
MANY = 20
MOST_ROWS = 200
MOST_KINDS = 20
MOST_LOOKED_AT = 10_000
PURE, MIXED, PART = 0.98, 0.7, 0.9
"""Of a field of any name: the share of rows that have the class of most rows of their value; the largest class; and the
share of held-out values above which it is a category, not a group that a split tore apart."""

RULE = Rule(
    id="D115",
    name="groups-split",
    title="Rows of one group are in training and in held-out data",
    severity=Severity.MEDIUM,
    sees="fields that are called as subjects, documents or recordings are, and as times are, across splits",
    matters="A model that recognises the subject knows the answer: it does worse on subjects that it never saw.",
    alike=(
        "A task about known groups: recommendations for users who are there already.",
        "Of times: windows that roll, a held-out block in the middle, times at which something only ended.",
    ),
    confirm=("Split by group and compare the score.",),
    thresholds={
        "overlap": Threshold(OVERLAP, "share of held-out groups", "a split by group has none"),
        "groups": Threshold(GROUPS, "groups", "fewer are sites or sensors, which are known on purpose"),
        "many": Threshold(MANY, "values", "of an id of another name; a category has fewer"),
        "most_rows": Threshold(MOST_ROWS, "rows of a group", "of an id of another name; of a category there are more"),
        "level": Threshold(LEVEL, "probability", "that rows of a group are so alike by chance (F-test)"),
        "late": Threshold(FEWEST, "rows", "of one training file within the time of the held-out data"),
        "others": Threshold(OTHERS, "share of the other training rows", "that may lie there as well"),
        "deep": Threshold(DEEP, "share of the held-out rows", "that half of the late rows lie behind"),
        "pure": Threshold(PURE, "share of rows", "with one class a value, in a field of another name"),
        "alike": Threshold(ALIKE, "intraclass correlation", "below that rows of a group are hardly alike"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each group field and held-out shard; a remark for times."""
    for data in (*view.sets, *(d for one in view.sets for d in (*by_column(one), *by_rows(one, view.split_files)))):
        train = [s for s in data.splits.get("train", ()) if s.columns]
        if not train:
            continue
        yield from (_late(late) for late in late_rows(data)
                    if late.log_chance + math.log(view.comparisons) < math.log(LEVEL))
        for name in data.fields:
            having = [s for s in train if name in s.columns and not s.columns[name].row_shape]
            for shard in (s for s in data.shards if s.split not in ("", "train") and name in s.columns):
                if having and (_is_group(having, name) or _tells_class(data, having, name)):
                    yield from _groups(data, having, shard, name)
                elif having and is_time(name):
                    yield from _times(having, shard, name)


def _groups(data: DataSet, train: list[Shard], shard: Shard, name: str) -> Iterator[Finding]:
    theirs = np.concatenate([keys(s.columns[name])[_said(s.columns[name])] for s in train])
    mine = np.unique(keys(shard.columns[name])[_said(shard.columns[name])])
    distinct = np.unique(theirs)
    both = np.isin(mine, distinct)
    overlap = float(both.mean()) if len(both) else 0.0
    if len(distinct) < GROUPS or len(theirs) < ROWS_PER_GROUP * len(distinct) or overlap < OVERLAP:
        return
    if overlap > PART and not _is_group(train, name):  # a category: all of its values are everywhere
        return
    alike, p = _alike(data, train, name)
    crossed = _crossed(train[0], name)
    known = f"; it is crossed with {crossed}, as users and items of recommendations are" if crossed else ""
    yield RULE.finding(
        f"{int(both.sum()):,} of {len(mine):,} values of {name} in {_part(shard, train)} ({percent(overlap)}) are in "
        f"the training data too ({short(train[0])}): {_named(shard, name, mine[both])}; rows of one {name} are alike "
        f"(intraclass correlation {alike:.2f}){known}",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=None if alike >= ALIKE and p < LEVEL / data.comparisons and not crossed else Severity.INFO,
        measured={"field": name, "overlap": overlap, "groups": len(distinct), "correlation": alike, "p": p,
                  "rows": _numbers(shard, np.flatnonzero(np.isin(keys(shard.columns[name]), mine[both]))[:20]),
                  "kind": "groups", "shard": short(shard)},
    )


def _said(column: Column) -> Array:
    """bool: the rows that name a group; an empty cell names none."""
    if column.kind == "text":
        return np.asarray(column.values != 0)
    return np.ones(column.rows, bool) if column.missing is None else np.asarray(~column.missing)


def _numbers(shard: Shard, index: Array) -> tuple[int, ...]:
    """The rows as the file counts them."""
    return tuple(int(i) for i in (index if shard.numbers is None else shard.numbers[index]))


def _part(shard: Shard, train: list[Shard]) -> str:
    """The held-out file, or the held-out rows of the file that names the split of each."""
    own = any(s.name == shard.name for s in train) and shard.numbers is not None
    return f"the {shard.split} rows of {short(shard)}" if own else short(shard)


def _named(shard: Shard, name: str, groups: Array) -> str:
    """The first groups with one of their rows each."""
    values = keys(shard.columns[name])
    return rows(shard, np.array([int(np.argmax(values == g)) for g in groups[:3]], np.int64), len(groups))


def _is_group(train: list[Shard], name: str) -> bool:
    """By its name, or called as any id is, with many values of a few rows each: a category has few."""
    column = train[0].columns[name]
    if is_group(name):
        return True
    whole = column.kind == "text" or (column.kind == "number" and column.values.dtype.kind in "iu")
    if not whole or not is_id_name(name) or is_identifier(column) or (column.kind == "text" and column.digests is None):
        return False
    kinds = len(np.unique(keys(column)))
    return kinds >= MANY and ROWS_PER_GROUP <= len(keys(column)) / kinds <= MOST_ROWS


def _tells_class(data: DataSet, train: list[Shard], name: str) -> bool:
    """Whether a field of any name holds many values of a few rows each, of which every one has a class of its own."""
    shard = max(train, key=lambda s: s.rows)
    column = shard.columns[name]
    whole = column.kind == "text" or (column.kind == "number" and column.values.dtype.kind in "iu")
    unsaid = column.kind == "text" and column.digests is None
    if name in data.labels or not whole or is_time(name) or is_identifier(column) or unsaid:
        return False
    groups = _codes(keys(column))
    kinds = int(groups.max()) + 1 if len(groups) else 0
    if kinds < MANY or not ROWS_PER_GROUP <= len(groups) / kinds <= MOST_ROWS:
        return False
    for label in (n for n in data.labels if n != name and n in shard.columns and not shard.columns[n].row_shape):
        y = _codes(keys(shard.columns[label]))
        classes = int(y.max()) + 1
        if 2 <= classes <= MOST_KINDS and len(y) == len(groups):
            counts = np.zeros((kinds, classes))
            np.add.at(counts, (groups, y), 1)
            if counts.max(axis=1).sum() >= PURE * len(y) and counts.sum(axis=0).max() <= MIXED * len(y):
                return True
    return False


def _crossed(shard: Shard, name: str) -> str:
    """Another field of ids of which most groups meet several, and which meet several of them, "" where none."""
    mine = keys(shard.columns[name])
    for other, column in shard.columns.items():
        if other == name or not is_id_name(other) or column.row_shape or column.kind == "sequence":
            continue
        if column.kind == "text" and column.digests is None:
            continue
        theirs = keys(column)
        pairs = len(np.unique(np.stack([_codes(mine), _codes(theirs)]), axis=1).T)
        a, b = len(np.unique(mine)), len(np.unique(theirs))
        if b >= MANY and len(theirs) >= ROWS_PER_GROUP * b and pairs >= 2 * max(a, b):
            return other
    return ""


def _codes(values: Array) -> Array:
    return np.asarray(np.unique(values, return_inverse=True)[1]).reshape(-1)


def _alike(data: DataSet, train: list[Shard], name: str) -> tuple[float, float]:
    """Of the field or label whose rows are most alike: its intraclass correlation and the chance of it (one-way ANOVA).

    The correlation is the share of the variance that lies between groups, beyond what chance gives. Of many features
    the median of the upper quarter is taken.
    """
    shard = max(train, key=lambda s: s.rows)
    index = _whole_groups(keys(shard.columns[name]), MOST_LOOKED_AT)
    inputs = tuple(n for n in input_fields(shard, data.labels) if n != name and not is_id_name(n))
    beside = tuple(
        n
        for n, c in shard.columns.items()
        if n not in (*inputs, *data.labels, name) and c.is_float and not c.row_shape
        and not is_id_name(n) and not is_identifier(c)
    )
    x = raw_features(shard, inputs + beside, index)
    groups = keys(shard.columns[name])[index]
    told = [_correlation(x, groups)] if x.shape[1] else []
    for label in (n for n in data.labels if n != name and n in shard.columns and not is_id_name(n)):
        y = keys(shard.columns[label])[index]
        kinds = np.unique(y)
        if 2 <= len(kinds) <= MOST_KINDS:
            told.append(_correlation((y[:, None] == kinds[None, :]).astype(np.float64), groups))
        elif y.dtype.kind in "iuf" and shard.columns[label].kind == "number":
            told.append(_correlation(y[:, None].astype(np.float64), groups))
    return max(told, default=(0.0, 1.0))


def _whole_groups(values: Array, most: int) -> Array:
    """int64: rows of whole groups, drawn evenly, about `most`: the first rows alone may hold one of each."""
    kinds, codes = np.unique(values, return_inverse=True)
    step = max(1, -(-len(values) // most))
    if len(kinds) < 4 * step:
        return np.arange(min(len(values), most))
    return np.flatnonzero(codes.reshape(-1) % step == 0)


def _correlation(x: Array, groups: Array) -> tuple[float, float]:
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    between_df, within_df = len(size) - 1, len(group) - len(size)
    if between_df < 1 or within_df < 1:
        return 0.0, 1.0
    x = np.nan_to_num(np.where(np.isfinite(x), x, np.nan) - np.nanmean(np.where(np.isfinite(x), x, np.nan), axis=0))
    means = np.stack([np.bincount(group, weights=c, minlength=len(size)) / size for c in x.T], axis=1)
    between = (size[:, None] * means**2).sum(axis=0) / between_df
    within: Array = ((x - means[group]) ** 2).sum(axis=0) / within_df
    typical = len(group) / len(size)
    share = (between - within) / np.maximum(between + (typical - 1) * within, 1e-30)
    order = np.argsort(share)[-max(1, len(share) // 4):]
    middle = int(order[len(order) // 2])
    ratio = float(between[middle] / max(within[middle], 1e-30))
    return float(np.median(share[order])), min(1.0, len(share) * f_tail(ratio, between_df, within_df))


def _times(train: list[Shard], shard: Shard, name: str) -> Iterator[Finding]:
    column = shard.columns[name]
    if column.kind != "number" or any(s.columns[name].kind != "number" for s in train):
        return
    low, high = min(s.summaries[name].low for s in train), max(s.summaries[name].high for s in train)
    values = np.asarray(column.values, np.float64).reshape(-1)
    inside = float(((values >= low) & (values <= high)).mean())
    if inside >= 0.5:
        yield RULE.finding(
            f"{percent(inside)} of the rows of {_part(shard, train)} lie within the time of the training data by "
            f"{name}",
            place(shard, name),
            shard.name,
            bearing=Bearing.COMPANION,
            severity=Severity.INFO,
            title="Held-out rows lie between training rows in time",
            measured={"share": inside, "kind": "time"},
        )


def _late(late: Late) -> Finding:
    files = short(late.shard)
    return RULE.finding(
        f"{len(late.rows):,} rows of {files} ({percent(late.share)} of it) lie after the beginning of the {late.split} "
        f"data by {late.field} ({late.held.row(late.first)} of {short(late.held)}), and all other {late.others:,} "
        f"training rows before: {rows(late.shard, late.rows)}",
        place(late.shard, late.field),
        late.shard.name,
        bearing=Bearing.CAUSE,
        title="Training rows are from the time of the held-out data",
        measured={"field": late.field, "kind": "late-rows", "count": len(late.rows), "share": late.share,
                  "split": late.split, "shard": files, "rows": _numbers(late.shard, late.rows[:20]),
                  "log_chance": late.log_chance},
    )
