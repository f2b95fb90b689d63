"""Rows of one subject, document or recording are in training and in held-out data.

Told of fields that are called so. Whether it matters depends on how alike the rows of one group are: that is measured
as the share of the features' variance that lies between groups (intraclass correlation), and where it is small the
finding is a remark. That held-out rows lie between the training rows in time is a remark as well: it depends on the
question.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.features import raw_features
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.roles import input_fields, is_group, is_time, keys
from traindx_tools.on_data.table import Array, DataSet, Shard, View
from traindx_tools.rules import Rule, Threshold

OVERLAP = 0.1
GROUPS = 8
ROWS_PER_GROUP = 2.0
ALIKE = 0.1

RULE = Rule(
    id="D115",
    name="groups-split",
    title="Rows of one group are in training and in held-out data",
    severity=Severity.MEDIUM,
    sees="fields that are called as subjects, documents or recordings are, and as times are, across splits",
    matters="A model that recognises the subject knows the answer: it does worse on subjects that it never saw.",
    alike=("A task about known groups: recommendations for users who are there already.",),
    confirm=("Split by group and compare the score.",),
    thresholds={
        "overlap": Threshold(OVERLAP, "share of held-out groups", "a split by group has none"),
        "groups": Threshold(GROUPS, "groups", "fewer are sites or sensors, which are known on purpose"),
        "alike": Threshold(ALIKE, "intraclass correlation", "below that rows of a group are hardly alike"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each group field and held-out shard; a remark for times."""
    for data in view.sets:
        train = [s for s in data.splits.get("train", ()) if s.columns]
        if not train:
            continue
        for name in data.fields:
            having = [s for s in train if name in s.columns and not s.columns[name].row_shape]
            for shard in (s for s in data.shards if s.split not in ("", "train") and name in s.columns):
                if having and is_group(name):
                    yield from _groups(data, having, shard, name)
                elif having and is_time(name):
                    yield from _times(having, shard, name)


def _groups(data: DataSet, train: list[Shard], shard: Shard, name: str) -> Iterator[Finding]:
    theirs = np.concatenate([keys(s.columns[name]) for s in train])
    mine = np.unique(keys(shard.columns[name]))
    distinct = np.unique(theirs)
    both = np.isin(mine, distinct)
    overlap = float(both.mean())
    if len(distinct) < GROUPS or len(theirs) < ROWS_PER_GROUP * len(distinct) or overlap < OVERLAP:
        return
    alike = _correlation(data, train[0], name)
    yield RULE.finding(
        f"{int(both.sum()):,} of {len(mine):,} values of {name} in {short(shard)} ({percent(overlap)}) are in the "
        "training "
        f"data too; rows of one {name} are alike (intraclass correlation {alike:.2f})",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=None if alike >= ALIKE else Severity.INFO,
        measured={"field": name, "overlap": overlap, "groups": len(distinct), "correlation": alike, "kind": "groups"},
    )


def _correlation(data: DataSet, shard: Shard, name: str) -> float:
    """The largest share of a feature's variance that lies between groups, beyond what chance gives (one-way ANOVA)."""
    index = np.arange(min(shard.rows, 5000))
    x = raw_features(shard, tuple(n for n in input_fields(shard, data.labels) if n != name), index)
    _, group, size = np.unique(keys(shard.columns[name])[index], return_inverse=True, return_counts=True)
    if not x.shape[1] or len(size) < 2 or len(index) <= len(size):
        return 0.0
    x = np.nan_to_num(x - np.nanmean(x, axis=0))
    means = np.stack(
        [np.bincount(group, weights=x[:, j], minlength=len(size)) / size for j in range(x.shape[1])], axis=1
    )
    between = (size[:, None] * means**2).sum(axis=0) / (len(size) - 1)
    within: Array = ((x - means[group]) ** 2).sum(axis=0) / (len(index) - len(size))
    typical = len(index) / len(size)
    share = (between - within) / np.maximum(between + (typical - 1) * within, 1e-30)
    return float(np.median(np.sort(share)[-max(1, len(share) // 4) :]))


def _times(train: list[Shard], shard: Shard, name: str) -> Iterator[Finding]:
    column = shard.columns[name]
    if column.kind != "number" or any(s.columns[name].kind != "number" for s in train):
        return
    low, high = min(s.summaries[name].low for s in train), max(s.summaries[name].high for s in train)
    values = np.asarray(column.values, np.float64).reshape(-1)
    inside = float(((values >= low) & (values <= high)).mean())
    if inside >= 0.5:
        yield RULE.finding(
            f"{percent(inside)} of the rows of {short(shard)} lie within the time of the training data by {name}",
            place(shard, name),
            shard.name,
            bearing=Bearing.COMPANION,
            severity=Severity.INFO,
            title="Held-out rows lie between training rows in time",
            measured={"share": inside, "kind": "time"},
        )
