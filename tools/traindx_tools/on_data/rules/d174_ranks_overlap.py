"""Samples of one rank are samples of the other ranks too, which share none among each other.

Stored orders of samples (what a sampler wrote down, a file a rank) of data-parallel ranks are parts of one permutation:
no sample is in two of them, but for the few that fill up the last batch. One rank that drew with another seed, or for
another number of ranks, meets the others' samples, and leaves as many out that then nobody sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 16
SHARED = 0.05
_RANK = re.compile(r"(?:rank|worker|replica|process|device|gpu)s?[_\- =]?(\d+)", re.IGNORECASE)

RULE = Rule(
    id="D174",
    name="ranks-overlap",
    title="Samples of one rank are those of other ranks as well",
    severity=Severity.HIGH,
    sees="stored orders of samples of several ranks: which samples two of them have in common",
    matters="Some samples count twice in an epoch and others never: the ranks' gradients are of other data than meant.",
    alike=("Ranks that draw with replacement, or each for itself: they all overlap, and nothing is said.",
           "A few samples that fill up the last batch of each rank."),
    confirm=("Count the distinct samples of all ranks together, and look at the seed and the number of ranks.",),
    thresholds={
        "fewest": Threshold(FEWEST, "samples", "of a rank"),
        "shared": Threshold(SHARED, "of a rank's samples", "that another has too: more than filling up a batch"),
    },
)


@dataclass(frozen=True, eq=False)
class _Rank:
    number: int
    shard: Shard
    field: str
    samples: Array


def check(view: View) -> Iterator[Finding]:
    """A finding for each rank that alone overlaps with the others of its epoch."""
    ranks: dict[str, list[_Rank]] = {}
    for shard in (s for d in view.sets for s in d.shards if s.numbers is None):
        for name, column in shard.columns.items():
            said = next(((w, m) for w in (name, shard.name) if (m := _last(w)) is not None), None)
            single = column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iu"
            if said is None or not single or column.rows < FEWEST:
                continue
            samples = np.unique(column.values)
            if len(samples) == column.rows:
                text, found = said
                beside = shard.name if text is name else ""
                key = f"{text[: found.start()]}#{text[found.end():]} {beside}"
                ranks.setdefault(key, []).append(_Rank(int(found[1]), shard, name, samples))
    told: dict[object, list[Finding]] = {}
    for same in ranks.values():
        if len(same) >= 3 and len({r.number for r in same}) == len(same):
            for finding in _judged(sorted(same, key=lambda r: r.number)):
                told.setdefault(finding.measured["rank"], []).append(finding)
    for first, *more in told.values():
        yield replace(first, statement=f"{first.statement}; so in {len(more)} more orders") if more else first


def _last(text: str) -> re.Match[str] | None:
    """The rank that a name says, of a file's path the innermost."""
    return max(_RANK.finditer(text), key=lambda m: m.start(), default=None)


def _judged(ranks: Sequence[_Rank]) -> Iterator[Finding]:
    shared = np.array([[0.0 if a is b else len(np.intersect1d(a.samples, b.samples, assume_unique=True))
                        / min(len(a.samples), len(b.samples)) for b in ranks] for a in ranks])
    for i, rank in enumerate(ranks):
        others = np.delete(np.arange(len(ranks)), i)
        if shared[np.ix_(others, others)].max() >= SHARED or shared[i].max() < SHARED:
            continue
        every = len(np.unique(np.concatenate([r.samples for r in ranks])))
        twice = sum(len(r.samples) for r in ranks) - every
        met = [ranks[k] for k in others.tolist() if shared[i, k] >= SHARED]
        if len(met) < 2 and len(ranks) < 4 and len(rank.samples) <= len(met[0].samples):
            continue  # of two that overlap neither is the odd one
        yield RULE.finding(
            f"rank {rank.number} ({short(rank.shard)}) has samples of rank {', '.join(str(r.number) for r in met[:6])} "
            f"({percent(float(shared[i].sum()))} of its {len(rank.samples):,}), and those share none among each other: "
            f"its order is of another seed, epoch or number of ranks; {twice:,} samples come twice, "
            f"{every:,} distinct ones of {every + twice:,} are left",
            place(rank.shard, rank.field),
            rank.shard.name,
            bearing=Bearing.CAUSE,
            measured={"field": rank.field, "rank": rank.number, "shared": float(shared[i].sum()), "twice": twice,
                      "kind": "overlap", "ranks": len(ranks), "shard": short(rank.shard)},
        )
        return
