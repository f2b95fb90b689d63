"""A field, or a feature of it, is constant in one shard and varies in the others; or the inputs never vary at all.

A feature that is the same everywhere is common in tables and at the borders of pictures, and is a remark. In one shard
alone it is a sensor that was off, or a column that was not filled. Some features are nearly always 0: the chance that a
shard of this size shows only that value is taken from the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.padding import is_mask_of_places, pads_from
from traindx_tools.on_data.places import listed, number, of, place
from traindx_tools.on_data.roles import is_label
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.tasks import Task, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 30
AS_ELSEWHERE = 0.05
"""By how much less a model may agree with the only label of a shard than with the labels of the other shards."""

RULE = Rule(
    id="D103",
    name="constant",
    title="A field is constant",
    severity=Severity.HIGH,
    sees="spread of each field and feature, by shard",
    matters="What does not vary tells a model nothing; where it varies elsewhere, a model learns which shard it sees.",
    alike=("A padding column, or a border of pictures: constant in all shards.", "A rare feature in a small shard.",
           "The end of rows that are padded to one width, in a bucket of short ones.",
           "A mask of ones beside numbers of the same places (rows without padding): a remark.",
           "A label that a model of the other shards says of these inputs too: a remark."),
    confirm=("Print the field's first rows in this shard and in another.",),
    thresholds={
        "fewest": Threshold(FEWEST, "rows", "below that a value may repeat by chance"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards, fields and features"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and field that is constant where others vary, and for inputs that never vary."""
    for data in view.sets:
        for name in data.fields:
            shards = [
                s for s in data.shards if name in s.columns and s.rows >= FEWEST and s.columns[name].kind == "number"
            ]
            if shards and all(s.summaries[name].constant for s in shards):
                if shards[0].format in ("pictures", "sounds") or any(
                        s.columns[name].kind == "sequence" for s in data.shards if name in s.columns):
                    continue  # all files have one size or rate, or buckets are of one length: as it should be
                yield from _never_varies(data, shards, name)
                continue
            for shard in shards:
                fits = any(_fits(t, shard) for t in tasks_of(data) if t.field == name)
                yield from _alone(shard, [s for s in shards if s is not shard], name, view.comparisons, fits)


def _never_varies(data: DataSet, shards: list[Shard], name: str) -> Iterator[Finding]:
    seen = shards[0].summaries[name]
    all_seen = seen.low == 1 and all(is_mask_of_places(s, s.columns[name]) for s in shards)
    wide = int(np.prod(shards[0].columns[name].row_shape)) >= 4 and not all_seen
    yield RULE.finding(
        f"{of(name, shards[0])} is {number(seen.low)} in all {sum(s.rows for s in shards):,} rows"
        + (f" of {len(shards)} shards" if len(shards) > 1 else ""),
        place(shards[0], name),
        shards[0].name,
        bearing=Bearing.CAUSE if wide else Bearing.SIGN,
        severity=Severity.HIGH if wide else Severity.INFO,
        measured={"field": name, "value": seen.low, "kind": "never-varies"},
    )


def _fits(task: Task, shard: Shard) -> bool:
    """Whether the only label of a shard is what the other shards' rows say of its inputs."""
    i = next((i for i, part in enumerate(task.parts) if part.shard is shard), None)
    others = [task.accuracy[j] for j in task.others(i)] if i is not None and task.scores[i] is not None else []
    return i is not None and bool(others) and task.accuracy[i] >= float(np.median(others)) - AS_ELSEWHERE


def _alone(shard: Shard, others: list[Shard], name: str, comparisons: int, fits: bool = False) -> Iterator[Finding]:
    """The features that are constant in this shard and vary in every other."""
    seen = shard.summaries[name]
    others = [s for s in others if s.summaries[name].shape == seen.shape]
    if not others:
        return
    if seen.column_stds is None or seen.column_means is None:
        if seen.constant and _by_chance(others, name, None, seen.low, seen.rows) * comparisons < LEVEL:
            yield _finding(shard, others, name, [], seen.low, fits)
        return
    still = np.flatnonzero(seen.column_stds <= 1e-9 * np.maximum(1.0, np.abs(seen.column_means)))
    moving = [i for i in still if all(_std(s, name, int(i)) > 0 for s in others)
              and not _is_padding([shard, *others], name, int(i), float(seen.column_means[i]))]
    told = [
        int(i)
        for i in moving
        if _by_chance(others, name, int(i), float(seen.column_means[i]), seen.rows)
        * comparisons
        * len(seen.column_stds)
        < LEVEL
    ]
    if told:
        yield _finding(shard, others, name, told, float(seen.column_means[told[0]]), fits)


def _is_padding(shards: list[Shard], name: str, feature: int, value: float) -> bool:
    """Whether rows end before that place in this shard: shorter ones, padded to the width of all."""
    return all(pads_from(s.columns[name], feature, value) for s in shards) and any(
        (np.asarray(s.columns[name].values[:5000, feature]) == value).any() for s in shards[1:])


def _std(shard: Shard, name: str, feature: int) -> float:
    stds = shard.summaries[name].column_stds
    return float(stds[feature]) if stds is not None else 0.0


def _by_chance(others: list[Shard], name: str, feature: int | None, value: float, rows: int) -> float:
    """The chance that `rows` rows all have this value where they and those of a sibling are split at random.

    Of T rows of the sibling K have another value: all of them fall on its side with (T/(T+rows))^K at most
    (hypergeometric). Counted against a share of the sibling alone, few rows would prove too much.
    """
    chances = []
    for values in (_column(s, name, feature) for s in others):
        differ = int(np.count_nonzero(~np.isclose(values, value, rtol=1e-6, atol=1e-12)))
        chances.append((len(values) / (len(values) + rows)) ** differ if len(values) else 1.0)
    return max(chances)


def _column(shard: Shard, name: str, feature: int | None) -> Array:
    flat = np.asarray(shard.columns[name].values).reshape(shard.rows, -1)
    return flat[:5000, feature] if feature is not None else flat[:5000].reshape(-1)[:50_000]


def _finding(shard: Shard, others: list[Shard], name: str, features: list[int], value: float, fits: bool) -> Finding:
    label = is_label(others[0].columns[name])
    width = int(np.prod(shard.columns[name].row_shape))
    what = of(name, shard)
    if features and len(features) < width:
        what = f"feature{'s' * (len(features) != 1)} {listed([str(f) for f in features])} of {what}"
    siblings = [s for s in others if s.split == shard.split]
    # Shards by class, and a small held-out set of one class, are no faults of a file.
    on_purpose = label and (len(siblings) < 2 or any(s.summaries[name].distinct_rows == 1 for s in others))
    return RULE.finding(
        f"{what} is {number(value)} in all {shard.rows:,} rows, and varies in {len(others)} other "
        f"shard{'s' * (len(others) != 1)}" + ("; its inputs say so too" if fits else ""),
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN if label else Bearing.CAUSE,
        severity=Severity.INFO if on_purpose or fits else Severity.MEDIUM if label else None,
        measured={"field": name, "value": value, "features": tuple(features[:20]), "kind": "in-one-shard"},
    )
