"""How a field of a row stands to the same field of its twin: equal, its complement, its negative, another class.

In all parts of the rows one answer holds for every pair of twins, whatever it is: a winner becomes the loser, a
steering angle its negative, a species stays. A part in which it does not hold has rows that were rearranged while the
field was not, or a field that was while the rows were not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, by_field
from traindx_tools.on_data.places import short
from traindx_tools.on_data.roles import is_row_id, is_time, keys
from traindx_tools.on_data.row_twins import Twins
from traindx_tools.on_data.shard import Shard

EACH = 20
"""Pairs of a part."""
HOLDS, BROKEN = 0.98, 0.7
"""Share of the pairs of all other parts for which the answer holds, and of the odd part at most."""
TELLING = 0.05
"""Share of the other pairs, whose value is not the commonest one: a constant field says nothing."""
DENSE = 0.9
"""Share of the pairs of a stretch of rows that break the answer."""
MOST_KINDS = 100
MOST_FIELDS = 32


@dataclass(frozen=True, eq=False)
class Broken:
    """Pairs `rows` (places among the twins) of `part`, in which `field` is not `usual` of its twin's but `here`."""

    twins: Twins
    field: str
    usual: str
    here: str
    part: str
    shard: int
    pairs: int
    broken: Array
    """int64: rows (`other` of the twins) that break it, of all files together."""
    others: int


def broken_relations(group: Sequence[Shard], twins: Twins, labels: Sequence[str]) -> Iterator[Broken]:
    """Of every field that the twins were not found by, the first part in which its relation is another one."""
    fields = list(_fields(group, twins))
    member = np.repeat(np.arange(len(group)), [s.rows for s in group])
    for name, values, numeric in fields[:MOST_FIELDS]:
        answers = list(_answers(values, numeric, twins, [f for f in fields if f[0] != name]))
        found = _odd_part(group, twins, name, answers, member, labels)
        if found is not None:
            yield found


def _fields(group: Sequence[Shard], twins: Twins) -> Iterator[tuple[str, Array, bool]]:
    for name in group[0].columns:
        columns = [s.columns.get(name) for s in group]
        if name in twins.fields or is_time(name):
            continue
        if all(c is not None and _is_scalar(c, s.rows) for c, s in zip(columns, group, strict=True)):
            some = [c for c in columns if c is not None]
            numeric = all(c.kind == "number" for c in some)
            every = np.concatenate([np.asarray(c.values, np.float64) if numeric else keys(c) for c in some])
            yield name, every, numeric


def _is_scalar(column: Column, rows: int) -> bool:
    if column.rows != rows or column.row_shape or column.missing is not None or is_row_id(column):
        return False
    return (column.kind == "number" and column.values.dtype.kind in "iufb") or (
        column.kind == "text" and column.digests is not None)


Answer = tuple[str, Array]
"""What is said of a field and its twin's, and bool shape (pairs,): for which it holds."""


def _answers(values: Array, numeric: bool, twins: Twins, others: Sequence[tuple[str, Array, bool]]) -> Iterator[Answer]:
    a, b = values[twins.one], values[twins.other]
    kinds, counts = np.unique(a, return_counts=True)
    if counts.max() > (1 - TELLING) * len(a):
        return
    yield "the same", np.asarray(a == b)
    if numeric:
        sums, often = np.unique(np.round(a + b, 9), return_counts=True)
        total = float(sums[often.argmax()])
        said = "the negative" if total == 0 else f"{total:g} less its twin's"
        yield said, np.abs(a + b - total) <= 1e-9 * max(1.0, abs(total))
    if 2 <= len(kinds) <= MOST_KINDS:
        to = {k: _most(b[a == k]) for k in kinds}
        mapped = np.array([to[k] for k in a])
        if not (mapped == a).all():
            yield "another class, for each class always the same one", mapped == b
    for name, theirs, same in others:
        if same == numeric:
            yield f"its twin's {name}", theirs[twins.one] == b


def _most(values: Array) -> object:
    kinds, counts = np.unique(values, return_counts=True)
    return kinds[counts.argmax()]


def _odd_part(group: Sequence[Shard], twins: Twins, name: str, answers: Sequence[Answer], member: Array,
              labels: Sequence[str]) -> Broken | None:
    if not answers:
        return None
    files = Cut("", tuple(short(s) for s in group), tuple(np.full(s.rows, i) for i, s in enumerate(group)), True)
    cuts = [files, *(c for c in by_field(group, labels) if c.origin and c.by != name)]
    for cut in cuts:
        part = np.concatenate(cut.member)[twins.other]
        found = _of_cut(cut, twins, name, answers, part, member)
        if found is not None:
            return found
    return _stretch(group, twins, name, answers, member)


def _of_cut(cut: Cut, twins: Twins, name: str, answers: Sequence[Answer], part: Array, member: Array) -> Broken | None:
    sizes = {p: int((part == p).sum()) for p in range(len(cut.names))}
    large = [p for p, n in sizes.items() if n >= EACH]
    for said, holds in answers:
        shares = {p: float(holds[part == p].mean()) for p in large}
        odd = [p for p in large if shares[p] <= BROKEN]
        rest = [p for p in large if p not in odd]
        if len(odd) == 1 and rest and len(rest) >= min(2, len(large) - 1) and min(shares[p] for p in rest) >= HOLDS:
            outside = int(sum(sizes[p] for p in rest))
            if len(large) == 2 and outside < sizes[odd[0]]:
                continue  # of two parts the smaller one is the odd one
            inside = part == odd[0]
            here = max(answers, key=lambda a: float(a[1][inside].mean()))
            told = here[0] if float(here[1][inside].mean()) >= HOLDS else "none of this"
            rows = twins.other[inside & ~holds]
            return Broken(twins, name, said, told, cut.told(odd[0]), int(member[rows[0]]), int(inside.sum()),
                          np.sort(rows), outside)
    return None


def _stretch(group: Sequence[Shard], twins: Twins, name: str, answers: Sequence[Answer], member: Array
             ) -> Broken | None:
    """A run of rows of one file in which the answer of all others does not hold."""
    said, holds = max(answers, key=lambda a: float(a[1].mean()))
    order = np.argsort(twins.other, kind="stable")
    misses = ~holds[order]
    if not EACH <= misses.sum() <= 0.5 * len(misses):
        return None
    first, behind = _densest(misses)
    inside = np.zeros(len(misses), bool)
    inside[first:behind] = True
    if misses[inside].mean() < DENSE or misses[inside].sum() < EACH or misses[~inside].mean() > 1 - HOLDS:
        return None
    pairs = order[inside]
    here = max(answers, key=lambda a: float(a[1][pairs].mean()))
    told = here[0] if float(here[1][pairs].mean()) >= DENSE else "none of this"
    rows = np.sort(twins.other[order[inside & misses]])
    shard = int(member[rows[0]])
    return Broken(twins, name, said, told, f"a stretch of {short(group[shard])}", shard, len(pairs), rows,
                  int((~inside).sum()))


def _densest(misses: Array) -> tuple[int, int]:
    """The stretch in which misses outweigh hits by most, a hit counting for two."""
    weights = np.where(misses, 1.0, -2.0)
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    low = np.minimum.accumulate(sums)
    behind = int(np.argmax(sums - low))
    return int(np.argmin(sums[: behind + 1])), behind
