"""Rows that hold nothing: empty texts, sequences of padding alone, labels that are all ignored, blank pictures.

A few are remarked. They count where a shard has many and its siblings few, or where every position of a row is ignored:
the mean loss of such a row is 0 / 0. They count as well where they stand in a run that chance does not make, or where
rows that are padding from end to end have labels of several classes: of a class of empty documents all have one.
Blank rows that several siblings have about as often (a dry frame of a radar, a pause) are part of the task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.padding import Padded, is_mask_of_places, longest_run, padded_rows
from traindx_tools.on_data.places import of, percent, place, rows, short
from traindx_tools.on_data.roles import keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.05
TIMES = 4.0
REMARK = 0.001
IGNORE = -100
WIDTH = 4
RUN = 5
LABELLED = 5
AS_OFTEN = 4.0

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
        "run": Threshold(RUN, "rows that follow each other", "fewer may be chance"),
        "as_often": Threshold(AS_OFTEN, "times the share of a sibling", "more is another matter than in that sibling"),
        "labelled": Threshold(LABELLED, "rows of padding with labels of several classes", "fewer change little"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard that stands out, and for rows without a label that counts."""
    for data in view.sets:
        told: set[tuple[str, int]] = set()
        remarked: set[tuple[tuple[int, ...], int]] = set()
        padded = [(s, padded_rows(data, s) if s.rows and s.numbers is None else None) for s in data.shards]
        for i, (shard, seen) in enumerate(padded):
            shares = [len(p.rows) / s.rows if p and seen and p.field == seen.field else 0.0 for s, p in padded]
            for finding, fields in _padding(shard, seen, _usual(shares, i), view.comparisons):
                told |= {(name, id(shard)) for name in fields}
                yield finding
        for name in data.fields:
            yield from _of_field(data, name, view.comparisons, told, remarked)


def _padding(shard: Shard, seen: Padded | None, usual: bool, comparisons: int
             ) -> Iterator[tuple[Finding, tuple[str, ...]]]:
    """A finding on rows that are padding throughout, and the fields that show it. `usual`: siblings have as many."""
    if seen is None or seen.one_class:
        return
    in_a_run = seen.run[1] >= RUN and seen.log_chance + math.log(comparisons) < math.log(LEVEL)
    by_nature = usual and shard.columns[seen.field].kind == "text"
    if not in_a_run and (by_nature or not seen.labels or len(seen.rows) < LABELLED):
        return
    first, count = seen.run
    where = f"rows {first}..{first + count - 1} in one stretch" if in_a_run else rows(shard, seen.rows)
    labelled = f", and {', '.join(seen.labels)} is set" if seen.labels else ""
    same = tuple(n for n, c in shard.columns.items() if n == seen.field or _blank_there(c, seen.rows))
    yield RULE.finding(
        f"{len(seen.rows):,} rows of {short(shard)} ({percent(len(seen.rows) / shard.rows)}) are padding from end to "
        f"end by {seen.field}{labelled}: {where}",
        place(shard, seen.field),
        shard.name,
        bearing=Bearing.SIGN,
        title="Rows that are all padding" + (" have labels" if seen.labels else ""),
        measured={
            "field": seen.field,
            "share": len(seen.rows) / shard.rows,
            "kind": "padding",
            "run": (first, first + count - 1),
            "rows": tuple(int(i) for i in seen.rows[:20]),
            "shard": short(shard),
        },
    ), same


def _blank_there(column: Column, where: Array) -> bool:
    found, _ = _empty(column)
    return len(found) > 0 and set(found.tolist()) <= set(where.tolist())


def _of_field(
    data: DataSet,
    name: str,
    comparisons: int,
    told: set[tuple[str, int]],
    remarked: set[tuple[tuple[int, ...], int]],
) -> Iterator[Finding]:
    """`told`: fields of shards that are told already. `remarked`: rows that were remarked of another field."""
    shards = [s for s in data.shards if name in s.columns and s.rows]
    found = [_found(s, name) for s in shards]
    shares = [len(where) / s.rows for s, where, _ in found]
    for i, (shard, where, kind) in enumerate(found):
        if not len(where) or (name, id(shard)) in told:
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
        elif kind == "blank" and not _usual(shares, i) and _in_a_run(data, shard, where, comparisons):
            first, count = longest_run(where)
            more = f"; {count:,} of them in one run from row {first}"
            yield _finding(shard, name, where, kind, shares[i], Bearing.SIGN, None, more)
        elif shares[i] >= REMARK and (key := (tuple(where[:50].tolist()), id(shard))) not in remarked:
            remarked.add(key)
            yield _finding(shard, name, where, kind, shares[i], Bearing.COMPANION, Severity.INFO, "")


def _found(shard: Shard, name: str) -> tuple[Shard, Array, str]:
    """The rows that hold nothing: of all rows where one pass has seen them, and the shard with as many."""
    where, kind = _empty(shard.columns[name])
    if kind == "blank" and shard.whole is not None and name in shard.whole.columns:
        return shard.full, shard.whole.blank.get(name, np.empty(0, np.int64)), kind
    return shard, *_unmasked(shard, name, where, kind)


def _usual(shares: Sequence[float], i: int) -> bool:
    """Whether most siblings, two at least, have such rows about as often."""
    others = [x for j, x in enumerate(shares) if j != i]
    return sum(AS_OFTEN * x >= shares[i] for x in others) >= max(2, len(others) / 2)


def _in_a_run(data: DataSet, shard: Shard, where: Array, comparisons: int) -> bool:
    """Whether rows follow each other as chance does not make them, and not because their class does."""
    count = longest_run(where)[1]
    chance = count * math.log(len(where) / shard.rows) + math.log(shard.rows * comparisons)
    if count < RUN or len(where) > 0.5 * shard.rows or chance >= math.log(LEVEL) or shard.numbers is not None:
        return False
    labels = [n for n in data.labels if n in shard.columns]
    return all(len(np.unique(keys(shard.columns[n])[where])) > 1 for n in labels)


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


def _unmasked(shard: Shard, name: str, where: Array, kind: str) -> tuple[Array, str]:
    """Without rows of a mask that lets everything through: ones beside another array of the same places."""
    column = shard.columns[name]
    if kind != "blank" or not is_mask_of_places(shard, column):
        return where, kind
    return where[column.values.reshape(shard.rows, -1)[where, 0] == 0], kind


def _all_ignored(items: Array, offsets: Array) -> Array:
    counted = np.concatenate([[0], np.cumsum(items != IGNORE)])
    lengths = np.diff(offsets)
    return np.asarray((counted[offsets[1:]] == counted[offsets[:-1]]) & (lengths > 0))
