"""Held-out data lack classes that are a large part of training: a split that was cut from sorted data.

With so many rows, drawn as the training rows were, none of a class that large cannot be missing by chance. Classes that
training lacks are told by D110.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import listed, percent, place
from traindx_tools.on_data.roles import is_beside_a_target, is_label, keys, label_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.3
FEWEST = 50
ENTITIES, CROSSED = 8, 0.9
"""Values of another field, and the share of their pairs with the classes that are there, once each."""

RULE = Rule(
    id="D128",
    name="class-sets",
    title="Held-out data lack classes that training has",
    severity=Severity.MEDIUM,
    sees="the classes of each split and their shares",
    matters="The score says nothing of the classes that are missing, and training has too few of the others.",
    alike=(
        "A held-out set of chosen classes.",
        "Test data without labels: one value throughout.",
        "A mark that only training rows have (how a row was augmented), beside the labels or once beside each source.",
    ),
    confirm=("Count the classes of each split.",),
    thresholds={
        "share": Threshold(SHARE, "share of the training rows", "of the classes that are missing together"),
        "rows": Threshold(FEWEST, "rows", "of the held-out split"),
        "level": Threshold(LEVEL, "probability", "that they are missing by chance"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each split and label."""
    for data in view.sets:
        train = data.splits.get("train", ())
        for name in (n for n in data.fields if any(n in s.columns and is_label(s.columns[n]) for s in train)):
            known = _labels(train, name)
            if known is None or any(s.numbers is not None for s in data.shards):
                continue
            for split, group in data.splits.items():
                held = _labels(group, name) if split not in ("", "train") else None
                if held is not None and len(held) >= FEWEST:
                    yield from _missing(data, name, split, known, held, view.comparisons)


def _labels(shards: tuple[Shard, ...], name: str) -> Array | None:
    columns = [s.columns[name] for s in shards if name in s.columns and s.rows]
    if not columns or len({c.kind for c in columns}) > 1 or any(c.missing is not None for c in columns):
        return None
    if columns[0].kind == "text" and any(c.digests is None for c in columns):
        return None
    return np.concatenate([keys(c) for c in columns])


def _is_crossed(shards: tuple[Shard, ...], name: str) -> bool:
    """Whether another field's values each stand once beside each class: every tune in every key, no draw of labels."""
    kinds = _labels(shards, name)
    for other in shards[0].columns:
        columns = [s.columns.get(other) for s in shards if name in s.columns and s.rows]
        if kinds is None or other == name or any(c is None or not _single(c) for c in columns):
            continue
        values = np.concatenate([keys(c) for c in columns if c is not None])
        if len(values) != len(kinds):
            continue
        each, one = np.unique(values, return_inverse=True)
        classes, two = np.unique(kinds, return_inverse=True)
        pairs = np.unique(one.reshape(-1) * len(classes) + two.reshape(-1))
        if len(pairs) == len(kinds) and len(each) >= ENTITIES and len(pairs) >= CROSSED * len(each) * len(classes):
            return True
    return False


def _single(column: Column) -> bool:
    return not column.row_shape and column.missing is None and (
        column.kind == "number" or (column.kind == "text" and column.digests is not None))


def _missing(
    data: DataSet, name: str, split: str, known: Array, held: Array, comparisons: int
) -> Iterator[Finding]:
    kinds, counts = np.unique(known, return_counts=True)
    there = np.unique(held)
    lacking = ~np.isin(kinds, there)
    share = float(counts[lacking].sum() / counts.sum())
    chance = len(held) * math.log(max(1e-300, 1.0 - share)) + len(kinds) * math.log(2.0) + math.log(comparisons)
    if share < SHARE or chance > math.log(LEVEL) or not np.isin(there, kinds).any():
        return
    if len(there) == 1 and (split == "test" or any(other != name for other in data.labels)):
        return  # a value in place of labels that nobody is to see, or a mark that only training rows have
    if len(there) == 1 and _is_crossed(data.splits["train"], name):
        return
    names = [label_name(data.shards, name, k) for k in kinds[lacking]]
    shard = next(s for s in data.splits[split] if name in s.columns)
    yield RULE.finding(
        f"{name} of the {split} data lacks {int(lacking.sum())} of the {len(kinds)} classes of training "
        f"({listed(names)}), which are {percent(share)} of the training rows: the split was cut from sorted data, or "
        "chosen by class",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.INFO if is_beside_a_target(data.shards, name) else None,
        measured={"field": name, "share": share, "split": split, "lacking": int(lacking.sum()), "kind": "lacking"},
    )
