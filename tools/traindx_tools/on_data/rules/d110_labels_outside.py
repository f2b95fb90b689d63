"""Labels lie outside of the classes: beyond the number that the configuration names, or detached from all others.

-1, -100 and 255 are common marks for "ignore" and are left alone. A class with few rows is no fault: long tails are
normal, so a label counts as detached only where the numbers below it are used without a gap, it lies twice as far
out, and nothing at all lies between: counts and durations thin out, classes end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, of, percent, place, rows
from traindx_tools.on_data.roles import is_apart_by_split, is_beside_a_target, is_label, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

IGNORED = (-1, -100, 255)
RARE = 0.02
UNKNOWN_SHARE = 0.01
RARER = 2.0

RULE = Rule(
    id="D110",
    name="labels-outside",
    title="Labels outside of the classes",
    severity=Severity.HIGH,
    sees="distinct values of label fields, by shard, beside the number of classes that is told",
    matters="Such a label stops training with an assert on the device, or trains an output that means nothing.",
    alike=("-1, -100, 255: marks for rows to ignore.", "A rare class at the end of a long tail."),
    confirm=("Print the named rows with their labels.",),
    thresholds={
        "rare": Threshold(RARE, "share of rows", "that the detached labels may have: more are a class of their own"),
        "unknown_share": Threshold(UNKNOWN_SHARE, "share of held-out rows", "whose class training never shows"),
        "rarer": Threshold(RARER, "times the share of training rows whose class stands there once",
                           "so many new classes a long tail has by itself (Good and Turing, 1953)"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard with such labels, and for held-out classes that training lacks."""
    for data in view.sets:
        for name in data.fields:
            labels = [s for s in data.shards if name in s.columns and _class_like(s, name)]
            large = [s for s in data.shards if name in s.columns and s.rows >= 10]
            if len(labels) >= max(1, 0.6 * len(large)) and not is_apart_by_split(data.shards, name):
                limit = _limit(labels, name)
                for shard in (s for s in data.shards if name in s.columns):
                    yield from _outside(shard, name, view, limit, ends=limit is None or _ends(labels, name, limit))
                yield from _unseen(data, name)


def _class_like(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return column.kind == "number" and column.is_integer and is_label(column)


def _limit(shards: list[Shard], name: str) -> int | None:
    """The number of classes as the values show it: the end of the numbers that are used without a gap."""
    values, counts = np.unique(
        np.concatenate([keys(s.columns[name]).astype(np.int64) for s in shards]), return_counts=True
    )
    used = values[(values >= 0) & (counts >= max(2, 1e-3 * counts.sum()))]
    if len(used) < 2 or used[0] not in (0, 1):
        return None
    gaps = np.flatnonzero(np.diff(used) > 1)
    end = int(used[gaps[0]] if len(gaps) else used[-1])
    return end + 1 if end > used[0] else None  # one number is no set of classes: what stands apart from it is a mark


def _ends(shards: list[Shard], name: str, limit: int) -> bool:
    """Whether no row of any shard lies between the last class and where a value counts as detached."""
    return not any(((v >= limit) & (v <= 2 * limit) & ~np.isin(v, IGNORED)).any()
                   for v in (keys(s.columns[name]).astype(np.int64) for s in shards))


def _outside(shard: Shard, name: str, view: View, limit: int | None, *, ends: bool) -> Iterator[Finding]:
    values = keys(shard.columns[name]).astype(np.int64)
    told = view.hints.classes
    by_config = told is not None and limit is not None and told >= limit > told // 2
    if by_config and told is not None:
        bad = ((values >= told) | (values < 0)) & ~np.isin(values, IGNORED)
        bound = f"{view.hints.told_by.get('classes', 'the configuration')} names {told} classes"
    elif limit is not None and ends:
        bad = ((values >= 2 * limit + 1) | (values < 0)) & ~np.isin(values, IGNORED)
        bound = f"all others are 0 to {limit - 1}"
    else:
        return
    share = float(bad.mean())
    if bad.any() and (by_config or share <= RARE):
        where = np.flatnonzero(bad)
        yield RULE.finding(
            f"{of(name, shard)} holds {listed([str(v) for v in np.unique(values[bad])])} in {len(where):,} "
            f"row{'s' * (len(where) != 1)} ({rows(shard, where)}); {bound}",
            place(shard, name),
            shard.name,
            bearing=Bearing.CAUSE if by_config else Bearing.SIGN,
            measured={
                "field": name,
                "values": tuple(int(v) for v in np.unique(values[bad])[:20]),
                "share": share,
                "classes": told if by_config else limit,
                "kind": "outside",
                "rows": tuple(int(i) for i in where[:20]),
            },
        )


def _kinds(shards: tuple[Shard, ...], name: str) -> Array:
    return np.unique(np.concatenate([keys(s.columns[name]) for s in shards if name in s.columns]))


def _unseen(data: DataSet, name: str) -> Iterator[Finding]:
    """Classes of the held-out data that training does not have."""
    train = data.splits.get("train", ())
    if not any(name in s.columns for s in train) or any(s.numbers is not None for s in train):
        return
    known = _kinds(train, name)
    seen = np.concatenate([keys(s.columns[name]) for s in train if name in s.columns])
    rows, once = len(seen), float((np.unique(seen, return_counts=True)[1] == 1).mean() * len(known) / len(seen))
    for split, group in data.splits.items():
        for shard in group if split not in ("train", "") else ():
            if name not in shard.columns or not is_label(shard.columns[name]):
                continue
            new = ~np.isin(keys(shard.columns[name]), known)
            share = float(new.mean())
            rare = share_tail(int(new.sum()), len(new), min(1.0, RARER * max(once, 1.0 / rows))) > LEVEL
            if new.any():
                kinds = np.unique(keys(shard.columns[name])[new])
                yield RULE.finding(
                    f"{of(name, shard)} holds {listed([str(k) for k in kinds])}, which no training row has, in "
                    f"{percent(share)} of its rows",
                    place(shard, name),
                    shard.name,
                    bearing=Bearing.SIGN,
                    title="Held-out classes that training lacks",
                    severity=Severity.MEDIUM if share >= UNKNOWN_SHARE and not rare and not is_beside_a_target(
                        data.shards, name) else Severity.INFO,
                    measured={"field": name, "share": share, "kind": "unseen"},
                )
