"""Labels of one part are counted from another number: 0 to K - 1 where all others have 1 to K, or the other way round.

Moved by one, its mix of labels is that of the others; as it is, it holds a number that nobody else has and lacks their
last one. Where a simple model of the others can tell the labels, D108 says it; a mix says it without one. A map of
classes beside the data tells of all files at once, where its first number never occurs or theirs has no name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_file, cuts_of, told_by_another_field
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.roles import is_id_name, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, chi2_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.tasks import USEFUL, tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 40
KINDS = 3
LACKED = 5.0
FITS = 0.01
SHARE_OF_EACH, APART, MOST_VALUES = 0.01, 0.15, 64
IGNORED = (-1, -100, 255)

RULE = Rule(
    id="D165",
    name="counted-from",
    title="Labels of one part are counted from another number",
    severity=Severity.HIGH,
    sees="the numbers that labels have by file, split and group, and their mix as it is and moved by one",
    matters="Each class is taken for its neighbour in this part, and its first or last one is a class of its own.",
    alike=(
        "A part that has a class more and lacks another one: its mix fits no better when it is moved.",
        "Grades and counts that are lower in one part: no number is new there.",
        "A background that is class 0 in all parts.",
    ),
    confirm=("Compare the list of classes with which the named part was made with that of the others.",
             "Add the named number in a copy and compare the mixes of labels again."),
    thresholds={
        "lacked": Threshold(LACKED, "rows", "of the last number that it lacks and should have, and of the new one"),
        "fits": Threshold(FITS, "probability", "of the part's mix, moved, if it were that of the others: at least"),
        "each": Threshold(SHARE_OF_EACH, "share of the rows", "of each value of an input that is no label: no tail"),
        "apart": Threshold(APART, "total variation", "of its mix, moved, to that of the others, at most"),
        "kinds": Threshold(KINDS, "classes", "fewer have no mix to compare"),
        "level": Threshold(LEVEL, "probability", "of its mix as it is, over all parts and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each label and part, and for each label that a map of classes beside the data contradicts."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        told: set[str] = set()
        for name in data.labels:
            shards = tuple(s for s in group if name in s.columns)
            if not shards or not all(_is_numbered(s, name) for s in shards):
                continue
            found = list(_of_parts(data, shards, name, view.comparisons))
            found = found or list(_of_maps(shards, name, view.name_lists))
            told |= {name} if found else set()
            yield from found
        for name in [n for n in data.fields if n not in told and not is_id_name(n)]:
            if len(group) > 3 and all(name in s.columns and _is_numbered(s, name) for s in group):
                yield from _of_inputs(data, group, name)


def _is_numbered(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return column.kind == "number" and column.is_integer and not math.prod(column.row_shape) > 1


def _of_parts(data: DataSet, group: Sequence[Shard], name: str, comparisons: int) -> Iterator[Finding]:
    values = [keys(s.columns[name]).astype(np.int64) for s in group]
    every = np.concatenate(values)
    cuts = [c for c in cuts_of(group, data.labels) if c.by != name]
    tries = comparisons * sum(len(c.names) for c in cuts) * 2.0
    for cut in cuts:
        member = np.concatenate(cut.member)
        for part in range(len(cut.names)):
            mine, others = every[member == part], every[(member != part) & (member >= 0)]
            by = _moved_by(mine, others, tries)
            if by and not _model_says_no(data, group, name, cut, part, by):
                yield _finding(group, name, cut, part, by, mine, others)
                return


def _of_inputs(data: DataSet, group: Sequence[Shard], name: str) -> Iterator[Finding]:
    """A file in which an input of few values has all of them moved by one, where each other file has the same ones."""
    values = [keys(s.columns[name]).astype(np.int64) for s in group]
    ends = [(int(v.min()), int(v.max())) for v in values]
    usual = max(set(ends), key=ends.count)
    odd = [i for i, e in enumerate(ends) if e != usual]
    if len(odd) != 1 or not KINDS <= usual[1] - usual[0] + 1 <= MOST_VALUES:
        return
    at = odd[0]
    by, mine = usual[0] - ends[at][0], values[at]
    others = np.concatenate([v for i, v in enumerate(values) if i != at])
    if by not in (1, -1) or ends[at][1] + by != usual[1] or 0 not in (usual[0], ends[at][0]) or len(mine) < FEWEST:
        return
    shares = [np.bincount(v - usual[0], minlength=usual[1] - usual[0] + 1) / len(v) for v in (mine + by, others)]
    far, near = (0.5 * float(np.abs(a - shares[1]).sum()) for a in (np.append(shares[0][1:], 0.0), shares[0]))
    if min(s.min() for s in shares) >= SHARE_OF_EACH and near <= APART and near < far:
        yield _finding(group, name, next(iter(by_file(group))), at, by, mine, others, Severity.MEDIUM)


def _moved_by(mine: Array, others: Array, tries: float) -> int:
    """What must be added to the labels of a part so that its mix is that of the others; 0 where nothing must."""
    mine, others = (v[~np.isin(v, IGNORED)] for v in (mine, others))
    if len(mine) < FEWEST or len(others) < 2 * len(mine) or len(np.unique(others)) < KINDS:
        return 0
    low, high = int(others.min()), int(others.max())
    for by in (1, -1):
        new, lost = (low - 1, high) if by == 1 else (high + 1, low)
        if (mine.min(), mine.max()) != (low - by, high - by) or not {low, new} & {0}:
            continue  # one of both ways of counting begins with 0
        if float((others == lost).mean()) * len(mine) < LACKED or bool((mine == lost).any()):
            continue
        if min(int((mine == new).sum()), float((others == new + by).mean()) * len(mine)) < LACKED:
            continue  # a tail that reaches a number further: a count, and no class
        fits, is_ = (_same_mix(v, others) for v in (mine + by, mine))
        if fits >= FITS and is_ * tries < LEVEL:
            return by
    return 0


def _same_mix(mine: Array, others: Array) -> float:
    """The probability of so different mixes if they were one (G-test of two samples)."""
    kinds = np.unique(np.concatenate([mine, others]))
    table = np.stack([np.bincount(np.searchsorted(kinds, v), minlength=len(kinds)) for v in (mine, others)])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    g = 2.0 * float((table * np.log(np.maximum(table, 1e-12) / expected))[table > 0].sum())
    return chi2_tail(g, len(kinds) - 1)


def _model_says_no(data: DataSet, group: Sequence[Shard], name: str, cut: Cut, part: int, by: int) -> bool:
    """Whether a simple model names the labels of the part as they are rather than moved."""
    for task in tasks_of(data):
        if task.field != name or task.binned:
            continue
        as_is = moved = rows = 0
        for i, p in enumerate(task.parts):
            at = next((j for j, s in enumerate(group) if s is p.shard), -1)
            scores = task.scores[i]
            if at < 0 or scores is None:
                continue
            inside = cut.member[at][p.index] == part
            named = task.kinds[scores.argmax(axis=1)][inside]
            y = task.kinds[p.y][inside]
            as_is, moved = as_is + int((named == y).sum()), moved + int((named == y + by).sum())
            rows += int(inside.sum())
        return as_is > moved and as_is - moved > USEFUL * rows
    return False


def _of_maps(group: Sequence[Shard], name: str, lists: Sequence[NameList]) -> Iterator[Finding]:
    """A map of as many classes as there are labels, whose numbers begin one higher or lower."""
    used = np.unique(np.concatenate([keys(s.columns[name]).astype(np.int64) for s in group]))
    used = used[~np.isin(used, IGNORED)]
    if len(used) < KINDS or used[0] not in (0, 1) or used[-1] - used[0] + 1 != len(used):
        return
    maps = [n for n in lists if n.numbered and n.is_index and len(n.names) == len(used)]
    if not maps or any(n.first == used[0] for n in maps):
        return
    shard = group[0]
    told, first, last = maps[0], int(used[0]), int(used[-1])
    nameless = first if first < told.first else last
    end = told.first + len(told.names) - 1 if first < told.first else told.first
    yield RULE.finding(
        f"{name} of {short(shard)}{' and its siblings' if len(group) > 1 else ''} counts from {first} to {last}, and "
        f"{told.file} numbers its {len(told.names)} names from {told.first} on: label {nameless} has no name, and "
        f"{end} ({told.names[-1 if first < told.first else 0]!r}) never occurs",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.MEDIUM,
        title="Labels and the map of their names are counted from different numbers",
        measured={"field": name, "kind": "map", "first": first, "map_first": told.first, "map": told.file,
                  "shard": short(shard)},
    )


def _finding(
    group: Sequence[Shard], name: str, cut: Cut, part: int, by: int, mine: Array, others: Array,
    most: Severity | None = None,
) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    shard = group[at]
    declared = told_by_another_field(group, cut, part, [name])
    said = (
        f"{name} of {cut.told(part)} counts from {int(mine.min())} to {int(mine.max())} where all others count from "
        f"{int(others.min())} to {int(others.max())}: {'plus' if by > 0 else 'minus'} 1, its mix of values is theirs "
        f"(as it is, {int((mine == (others.min() - 1 if by > 0 else others.max() + 1)).sum()):,} of {len(mine):,} rows "
        "have a value that no other part has)"
    )
    return RULE.finding(
        said + (f"; {declared}" if declared else ""),
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else most if cut.origin else Severity.MEDIUM,
        measured={"field": name, "by": cut.by or "file", "part": cut.names[part], "shift": by, "rows": (),
                  "count": len(mine), "kind": "declared" if declared else "input" if most is not None else "part",
                  "shard": short(shard)},
    )
