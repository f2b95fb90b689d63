"""Held-out rows are training rows with two sides exchanged, a sign turned, or an array mirrored or turned.

Copies that were made for augmentation before the split was drawn: no row is equal to another, and each held-out row
was trained on from the other side. Where such rows meet by nature (openings of a game), equal rows do as well, and as
often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.row_twins import BY_CHANCE, FEWEST, OBEY, Twins, twins_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE, AS_EQUAL = 0.05, 4.0

RULE = Rule(
    id="D207",
    name="rearranged-copies",
    title="Held-out rows are training rows, rearranged",
    severity=Severity.HIGH,
    sees="held-out rows that are a training row with columns exchanged, signs turned, or an array mirrored, turned or "
         "reversed, bit for bit",
    matters="The model was trained on the same case from the other side: the score says nothing of new ones.",
    alike=("Positions of a game that recur by nature: equal rows recur as often.",
           "Pairs of ids alone: whether a relation has a direction is asked elsewhere."),
    confirm=("Print the named rows and their twins.", "Split before rows are mirrored."),
    thresholds={
        "fewest": Threshold(FEWEST, "pairs", "of twins that one rearrangement makes"),
        "share": Threshold(SHARE, "of the held-out rows", "that have a twin in training"),
        "as_equal": Threshold(AS_EQUAL, "times", "the held-out rows that are equal to a training row"),
        "obey": Threshold(OBEY, "share of the twins", "that one rearrangement of a table explains"),
        "by_chance": Threshold(BY_CHANCE, "of the twins", "that are left once a column is shuffled"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard and rearrangement that most of its rows have."""
    for data in view.sets:
        group = [s for s in data.shards if s.columns and s.rows]
        if not any(s.split == "train" for s in group) or all(s.split in ("", "train") for s in group):
            continue
        most: dict[int, tuple[Twins, np.ndarray]] = {}
        for twins in (t for t in twins_of(data) if not t.ids_alone):
            for at, found in _across(group, twins):
                if at not in most or len(found) > len(most[at][1]):
                    most[at] = twins, found
        for at, (twins, found) in most.items():
            yield from _of_shard(group, at, twins, found)


def _across(group: Sequence[Shard], twins: Twins) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of each held-out shard that have a twin in training."""
    starts = np.cumsum([0, *(s.rows for s in group)])
    trained = np.repeat([s.split == "train" for s in group], [s.rows for s in group])
    a, b = (np.concatenate([twins.one, twins.other]), np.concatenate([twins.other, twins.one]))
    met = np.unique(a[~trained[a] & trained[b]])
    for at, shard in enumerate(group):
        own = met[(met >= starts[at]) & (met < starts[at + 1])] - starts[at]
        if shard.split not in ("", "train") and len(own):
            yield at, own


def _of_shard(group: Sequence[Shard], at: int, twins: Twins, found: np.ndarray) -> Iterator[Finding]:
    shard = group[at]
    equal = twins.equal_rows(at, [s.rows for s in group], [s.split == "train" for s in group])
    if len(found) < max(FEWEST, SHARE * shard.rows, AS_EQUAL * equal):
        return
    yield RULE.finding(
        f"{len(found):,} of {shard.rows:,} rows of {short(shard)} ({percent(len(found) / shard.rows)}) are training "
        f"rows with {twins.operation} (and {equal:,} are equal to one): {rows(shard, found)}",
        place(shard, twins.fields[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"operation": twins.operation, "share": len(found) / shard.rows, "equal": equal,
                  "field": twins.fields[0], "fields": twins.fields[:20], "rows": tuple(int(i) for i in found[:20]),
                  "kind": "across-splits", "shard": short(shard)},
    )
