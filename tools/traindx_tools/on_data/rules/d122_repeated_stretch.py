"""A stretch of rows repeats an earlier stretch of the same file, and has other labels or groups.

The same inputs in the same order are no chance: a part was written twice, and what belongs to it came from elsewhere.
A file most of whose rows recur is made so (several annotators, labels one below the other, epochs); the same labels
again are a remark of D113.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.copies import signatures
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.roles import is_group, keys
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import Array, DataSet, Shard, View
from traindx_tools.rules import Rule, Threshold

RUN = 8
MOST = 0.5
OTHER = 0.2

RULE = Rule(
    id="D122",
    name="repeated-stretch",
    title="A stretch of rows is in a file twice, with other labels",
    severity=Severity.HIGH,
    sees="hashes of the inputs of each row, in the order of the rows, and the labels beside them",
    matters="One of the two is labelled wrongly, or one group stands under two names and so in two splits.",
    alike=("Several annotators: most rows recur.", "Rare classes repeated on purpose: with the same labels."),
    confirm=("Print the named rows side by side.",),
    thresholds={
        "run": Threshold(RUN, "rows in the same order", "fewer may recur by themselves"),
        "most": Threshold(MOST, "share of the file's rows that recur", "above, the file is made so"),
        "other": Threshold(OTHER, "share of the stretch with other labels", "above what annotators differ by"),
        "level": Threshold(LEVEL, "probability", "that rows that recur by chance stand in such an order"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for the longest such stretch of each file and field."""
    for data in view.sets:
        for shard in data.shards:
            if shard.rows >= 2 * RUN and shard.numbers is None:
                yield from _of_shard(data, shard, view.comparisons)


def _of_shard(data: DataSet, shard: Shard, comparisons: int) -> Iterator[Finding]:
    signed, telling = signatures(data, shard)
    runs, natural = _runs(signed, telling)
    for name in (*data.labels, *(n for n in shard.columns if is_group(n))):
        column = shard.columns.get(name)
        if column is None or column.kind == "sequence" or column.row_shape or (
            column.kind == "text" and column.digests is None
        ):
            continue
        values = keys(column)
        for at, source, count in runs:
            chance = 2 * math.log(len(signed)) + count * math.log(natural) + math.log(comparisons)
            other = values[at : at + count] != values[source : source + count]
            p = share_tail(int(other.sum()), count, 0.05) * comparisons
            if chance < math.log(LEVEL) and p < LEVEL and float(other.mean()) >= OTHER:
                yield _finding(shard, name, (at, source, count), float(other.mean()))
                break


def _runs(signed: Array, telling: Array) -> tuple[list[tuple[int, int, int]], float]:
    """(first row, first row of the earlier stretch, rows) from the longest on; the share of rows that recur else."""
    if len(telling) < 2 * RUN:
        return [], 1.0
    own = np.zeros(len(signed), bool)
    own[telling] = True
    _, first, inverse = np.unique(signed, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    twins = np.flatnonzero(own & (earlier < np.arange(len(signed))))
    if len(twins) < RUN or 2 * len(twins) > MOST * len(telling):
        return [], 1.0
    cuts = np.flatnonzero((np.diff(twins) != 1) | (np.diff(earlier[twins]) != 1)) + 1
    runs = sorted((r for r in np.split(twins, cuts) if len(r) >= RUN), key=lambda r: -len(r))
    natural = (len(twins) - sum(len(r) for r in runs) + 1) / len(signed)
    return [(int(r[0]), int(earlier[r[0]]), len(r)) for r in runs], min(1.0, natural)


def _finding(shard: Shard, name: str, run: tuple[int, int, int], other: float) -> Finding:
    at, source, count = run
    return RULE.finding(
        f"rows {at}..{at + count - 1} of {short(shard)} hold the same inputs as rows {source}..{source + count - 1}, "
        f"in the same order, and {percent(other)} of them another {name}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": name,
            "rows": (at, at + count - 1),
            "source": (source, source + count - 1),
            "share": other,
            "kind": "groups" if is_group(name) else "labels",
            "shard": short(shard),
        },
    )
