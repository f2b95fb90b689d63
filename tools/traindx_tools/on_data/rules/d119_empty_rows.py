"""Rows that hold nothing: empty texts, sequences of padding alone, labels that are all ignored, blank pictures.

A few are remarked. They count where a shard has many and its siblings few, or where every position of a row is ignored:
the mean loss of such a row is 0 / 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import of, percent, place, rows, short
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import Array, Column, DataSet, Shard, View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.05
TIMES = 4.0
REMARK = 0.001
IGNORE = -100
WIDTH = 4

RULE = Rule(
    id="D119",
    name="empty-rows",
    title="Rows that hold nothing",
    severity=Severity.MEDIUM,
    sees="texts without letters, rows of one value, rows whose labels are all ignored",
    matters="They teach nothing or the wrong thing, and a loss over no position is 0 / 0.",
    alike=("Blank pictures and silence that are part of the task, in every shard.",),
    confirm=("Print the named rows.",),
    thresholds={
        "share": Threshold(SHARE, "of a shard's rows", "fewer change little"),
        "times": Threshold(TIMES, "times its siblings", "a shard must stand out"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard that stands out, and for rows without a label that counts."""
    for data in view.sets:
        for name in data.fields:
            yield from _of_field(data, name, view.comparisons)


def _of_field(data: DataSet, name: str, comparisons: int) -> Iterator[Finding]:
    shards = [s for s in data.shards if name in s.columns and s.rows]
    found = [(s, *_empty(s.columns[name])) for s in shards]
    shares = [len(where) / s.rows for s, where, _ in found]
    for i, (shard, where, kind) in enumerate(found):
        if not len(where):
            continue
        rest = max((x for j, x in enumerate(shares) if j != i), default=1.0)
        alone = (
            len(shards) >= 3
            and shares[i] >= SHARE
            and share_tail(len(where), shard.rows, min(1.0, max(TIMES * rest, 0.01))) * comparisons < LEVEL
        )
        if kind == "ignored" and shares[i] < 0.5:
            yield _finding(shard, name, where, kind, shares[i], Bearing.CAUSE, None, "")
        elif alone:
            yield _finding(
                shard, name, where, kind, shares[i], Bearing.SIGN, None, f"; in its siblings at most {percent(rest)}"
            )
        elif shares[i] >= REMARK:
            yield _finding(shard, name, where, kind, shares[i], Bearing.COMPANION, Severity.INFO, "")


_WORDS = {
    "text": "empty texts",
    "sequence": "empty sequences",
    "ignored": "rows whose labels are all ignored (-100)",
    "blank": "rows of one value",
}


def _finding(
    shard: Shard,
    name: str,
    where: Array,
    kind: str,
    share: float,
    bearing: Bearing,
    severity: Severity | None,
    more: str,
) -> Finding:
    return RULE.finding(
        f"{of(name, shard)} has {len(where):,} {_WORDS[kind]} ({percent(share)}): {rows(shard, where)}{more}",
        place(shard, name),
        shard.name,
        bearing=bearing,
        severity=severity,
        measured={
            "field": name,
            "share": share,
            "kind": kind,
            "rows": tuple(int(i) for i in where[:20]),
            "shard": short(shard),
        },
    )


def _empty(column: Column) -> tuple[Array, str]:
    """The rows that hold nothing, and of what kind."""
    if column.kind == "text":
        return (np.flatnonzero(column.values == 0), "text") if column.texts else (np.empty(0, np.int64), "text")
    if column.offsets is not None:
        lengths = column.lengths
        ignored = _all_ignored(column.values, column.offsets) if column.is_integer else np.zeros(len(lengths), bool)
        return (np.flatnonzero(ignored), "ignored") if ignored.any() else (np.flatnonzero(lengths == 0), "sequence")
    flat = column.values.reshape(len(column.values), -1)
    if flat.shape[1] < WIDTH or column.values.dtype.kind not in "iuf":
        return np.empty(0, np.int64), "blank"
    if column.is_integer and (flat[:, 0] == IGNORE).any():
        ignored = (flat == IGNORE).all(axis=1)
        if ignored.any():
            return np.flatnonzero(ignored), "ignored"
    if flat.shape[1] < 2 * WIDTH:
        return np.empty(0, np.int64), "blank"
    candidates = np.flatnonzero((flat[:, 0] == flat[:, -1]) & (flat[:, 0] == flat[:, flat.shape[1] // 2]))
    blank = [
        c
        for start in range(0, len(candidates), 1024)
        for c in candidates[start : start + 1024][
            (flat[candidates[start : start + 1024]] == flat[candidates[start : start + 1024], :1]).all(axis=1)
        ]
    ]
    return np.array(blank, np.int64), "blank"


def _all_ignored(items: Array, offsets: Array) -> Array:
    counted = np.concatenate([[0], np.cumsum(items != IGNORE)])
    lengths = np.diff(offsets)
    return np.asarray((counted[offsets[1:]] == counted[offsets[:-1]]) & (lengths > 0))
