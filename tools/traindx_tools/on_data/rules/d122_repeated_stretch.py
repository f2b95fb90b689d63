"""A stretch of rows repeats an earlier stretch of the same file with other labels or groups, or one of another file.

The same inputs in the same order are no chance: a part was written twice, and what belongs to it came from elsewhere.
A file most of whose rows recur is made so (several annotators, labels one below the other, epochs); the same labels
again are a remark of D113. Rows of another file of the same split again are a part that counts twice: fields that
number, name or date the rows are left out, so a copy under new numbers is one. Where most files share rows with
others, as files of overlapping windows do, that is a remark. Measurements that recur exactly while the numbers or times
of the rows go on were written twice: constant stretches, periods and rows of one class that are repeated are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.copies import none_recurs, signed_shards
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.roles import is_group, is_identifier, is_target, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RUN = 8
MOST = 0.5
OTHER = 0.2
WHOLE = 0.9
AGAIN = 16
SPARE = 0.2

RULE = Rule(
    id="D122",
    name="repeated-stretch",
    title="A stretch of rows is there twice",
    severity=Severity.HIGH,
    sees="hashes of the inputs of each row, in the order of the rows, and the labels beside them",
    matters="One of the two is labelled wrongly, or one group stands under two names and so in two splits.",
    alike=("Several annotators: most rows recur.", "Rare classes repeated on purpose: with the same labels."),
    confirm=("Print the named rows side by side.",),
    thresholds={
        "run": Threshold(RUN, "rows in the same order", "fewer may recur by themselves"),
        "most": Threshold(MOST, "share of the file's rows that recur", "above, the file is made so"),
        "other": Threshold(OTHER, "share of the stretch with other labels", "above what annotators differ by"),
        "again": Threshold(AGAIN, "rows in the same order", "of measurements while numbers or times go on"),
        "spare": Threshold(SPARE, "share of the stretch", "that may stand elsewhere as well: a period recurs"),
        "level": Threshold(LEVEL, "probability", "that rows that recur by chance stand in such an order"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for the longest such stretch of each file and field."""
    for data in view.sets:
        if none_recurs(data):
            continue
        signed = [e for e in signed_shards(data) if e[0].rows >= 2 * RUN and e[0].numbers is None and e[0].columns]
        for shard, digests, telling in signed:
            yield from _of_shard(data, shard, digests, telling, view.comparisons)
        yield from _across_files(signed, view.comparisons)


def _of_shard(
    data: DataSet, shard: Shard, signed: Array, telling: Array, comparisons: int
) -> Iterator[Finding]:
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
                return
    for run in runs:
        if 2 * math.log(len(signed)) + run[2] * math.log(natural) + math.log(comparisons) < math.log(LEVEL):
            ids = _going_on(data, shard, signed, run)
            if ids is not None:
                yield _again(shard, run, ids)
                return


def _going_on(data: DataSet, shard: Shard, signed: Array, run: tuple[int, int, int]) -> list[str] | None:
    """The columns that number or date rows and go on while all measurements recur; None where that is no fault.

    A constant stretch has few rows that differ, a period recurs more than twice, and rows of one class are repeated on
    purpose. Without numbers or times only unlabelled measurements are told: others may be repeated on purpose as well.
    """
    at, source, count = run
    first, again = slice(source, source + count), slice(at, at + count)
    rows = signed[again]
    if count < AGAIN or len(np.unique(rows)) < WHOLE * count or at < source + count:
        return None
    if int(np.isin(signed, rows).sum()) > (2 + SPARE) * count:
        return None
    named = [n for n in data.labels if n in shard.columns and is_target(n)]
    if any(len(np.unique(keys(shard.columns[n])[again])) < 2 for n in named):
        return None
    if not all(c.kind == "number" for n, c in shard.columns.items() if not is_identifier(c)):
        return None
    ids = [n for n, c in shard.columns.items() if is_identifier(c)]
    going = [n for n in ids if shard.columns[n].kind != "sequence" and not shard.columns[n].row_shape
             and float((keys(shard.columns[n])[again] != keys(shard.columns[n])[first]).mean()) >= WHOLE]
    return going if going or not (ids or data.labels) else None


def _again(shard: Shard, run: tuple[int, int, int], ids: Sequence[str]) -> Finding:
    at, source, count = run
    while_ = f", while {listed(ids)} go{'es' * (len(ids) == 1)} on" if ids else ""
    return RULE.finding(
        f"rows {at}..{at + count - 1} of {short(shard)} repeat rows {source}..{source + count - 1} in the same order, "
        f"exactly in all measurements{while_}",
        place(shard),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.MEDIUM,
        title="A stretch of rows is there again in the same file",
        measured={"rows": (at, at + count - 1), "source": (source, source + count - 1), "kind": "again",
                  "shard": short(shard)},
    )


def _runs(signed: Array, telling: Array) -> tuple[list[tuple[int, int, int]], float]:
    """(first row, first row of the earlier stretch, rows) from the longest on; the share of rows that recur else."""
    if len(telling) < 2 * RUN:
        return [], 1.0
    own = np.zeros(len(signed), bool)
    own[telling] = True
    if not _some_recur(signed):
        return [], 1.0
    _, first, inverse = np.unique(signed, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    twins = np.flatnonzero(own & (earlier < np.arange(len(signed))))
    if len(twins) < RUN or 2 * len(twins) > MOST * len(telling):
        return [], 1.0
    cuts = np.flatnonzero((np.diff(twins) != 1) | (np.diff(earlier[twins]) != 1)) + 1
    runs = sorted((r for r in np.split(twins, cuts) if len(r) >= RUN), key=lambda r: -len(r))
    natural = (len(twins) - sum(len(r) for r in runs) + 1) / len(signed)
    return [(int(r[0]), int(earlier[r[0]]), len(r)) for r in runs], min(1.0, natural)


def _some_recur(signed: Array) -> bool:
    """Whether enough rows recur for a stretch: to sort hashes is a tenth of finding where each stood first."""
    return len(signed) - len(distinct(signed)) >= RUN


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


_Signed = tuple[Shard, Array, Array]
_Copied = tuple[Shard, int, Shard, int, int]
"""File, first row, file of origin, first row there, rows."""


def _across_files(signed: Sequence[_Signed], comparisons: int) -> Iterator[Finding]:
    """The longest stretch of each file that is in an earlier one of its split; one remark where most have one."""
    found = []
    for split in dict.fromkeys(s.split for s, _, _ in signed):
        found += _copied([g for g in signed if g[0].split == split], comparisons)
    usual = len(found) > max(1, len(signed) // 3)
    for shard, at, source, there, count in found[:1] if usual else found:
        ids = [n for n, c in shard.columns.items() if is_identifier(c)]
        apart = f" but for {listed(ids)}" if ids else ""
        more = f"; {len(found)} of {len(signed)} files hold rows of others" if usual else ""
        yield RULE.finding(
            f"rows {at}..{at + count - 1} of {short(shard)} are rows {there}..{there + count - 1} of {short(source)} "
            f"again, in the same order{apart}{more}",
            place(shard),
            shard.name,
            bearing=Bearing.COMPANION if usual else Bearing.SIGN,
            severity=Severity.INFO if usual else Severity.MEDIUM,
            title="A stretch of rows is in two files",
            measured={
                "rows": (at, at + count - 1),
                "source": (there, there + count - 1),
                "other": short(source),
                "kind": "overlapping" if usual else "two-files",
                "shard": short(shard),
            },
        )


def _copied(group: Sequence[_Signed], comparisons: int) -> list[_Copied]:
    if len(group) < 2 or sum(len(telling) for _, _, telling in group) < RUN:
        return []
    every = np.concatenate([d for _, d, _ in group])
    owner = np.repeat(np.arange(len(group)), [len(d) for _, d, _ in group])
    starts = np.concatenate([[0], np.cumsum([len(d) for _, d, _ in group])])
    own = np.zeros(len(every), bool)
    for k, (_, _, telling) in enumerate(group):
        own[starts[k] + telling] = True
    if not _some_recur(every):
        return []
    _, first, inverse = np.unique(every, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    twins = np.flatnonzero(own & (earlier < np.arange(len(every))))
    if len(twins) < RUN:
        return []
    cuts = (np.diff(twins) != 1) | (np.diff(earlier[twins]) != 1) | (np.diff(owner[twins]) != 0)
    cuts |= np.diff(owner[earlier[twins]]) != 0
    runs = [r for r in np.split(twins, np.flatnonzero(cuts) + 1) if len(r) >= RUN]
    natural = min(1.0, (len(twins) - sum(map(len, runs)) + 1) / len(every))
    best: dict[int, Array] = {}
    for run in runs:
        k, other = int(owner[run[0]]), int(owner[earlier[run[0]]])
        chance = 2 * math.log(len(every)) + len(run) * math.log(natural) + math.log(comparisons)
        whole = len(run) >= WHOLE * min(len(group[k][1]), len(group[other][1]))  # D113 tells that
        if k != other and not whole and chance < math.log(LEVEL) and len(run) > len(best.get(k, ())):
            best[k] = run
    return [
        (group[k][0], int(r[0] - starts[k]), group[o][0], int(earlier[r[0]] - starts[o]), len(r))
        for k, r in best.items()
        for o in (int(owner[earlier[r[0]]]),)
    ]
