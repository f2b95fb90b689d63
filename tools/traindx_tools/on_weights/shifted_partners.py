"""Stacks whose members stand in the place of their neighbours: block k has what belongs to block k - 1.

Asked of the same relations as exchanges (`partners.py`): rows of a matrix and its bias, columns of matrices that read
the same input. Where no member of a stack goes with its own partner, and each with that of the block so many further
on, the stack was numbered otherwise when it was written or loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.partners import (
    FEWEST,
    HOLDS,
    OWN,
    SURE,
    Profile,
    Relation,
    profiles_of,
    relations_of,
)
from traindx_tools.on_weights.seen import Stack, stacks_of
from traindx_tools.on_weights.statistics import Stats


@dataclass(frozen=True)
class Shift:
    """`pattern`: the stack. `by`: block k holds what goes with block k + by. Correlations are means over all blocks."""

    pattern: str
    first: str
    blocks: int
    by: int
    here: float
    there: float
    beside: str
    z: float


def shifts(stats: Sequence[Stats]) -> Iterator[Shift]:
    """The stack that most relations tell to be shifted, of those that share one; the surest first."""
    profiles = {s.name: profiles_of(s) for s in stats}
    relations = relations_of(stats, profiles)
    found = [(stack, shift) for stack in stacks_of(stats, FEWEST)
             for r in relations if (shift := _shift(stack, r, profiles)) is not None]
    kept = {stack.pattern for stack, _ in found if any(_goes(stack, r, profiles) for r in relations)}
    counts: dict[str, list[Shift]] = {}
    for _, shift in found:
        if kept != {s.pattern for _, s in found} and shift.pattern in kept:
            continue  # it is with its own bias: what it lies beside is shifted
        counts.setdefault(shift.pattern, []).append(shift)
    ranked = sorted(counts.values(), key=lambda own: (-len(own), -max(s.z for s in own)))
    told: set[str] = set()
    for own in ranked:
        best = max(own, key=lambda s: s.z)
        if len({s.by for s in own}) == 1 and told.isdisjoint({best.pattern.partition("*")[0]}):
            told.add(best.pattern.partition("*")[0])
            yield best


def _table(stack: Stack, relation: Relation, profiles: Mapping[str, Mapping[str, Profile]]
           ) -> NDArray[np.float64] | None:
    """How each member (row) goes with the partner of each (column); None where some have none of their length."""
    names = [s.name for s in stack.members]
    if any(n not in relation.partner or relation.axis not in profiles[n] for n in names):
        return None
    mine, partners = [profiles[n][relation.axis] for n in names], [relation.partner[n] for n in names]
    if len({len(p) for p in (*mine, *partners)}) > 1:
        return None
    return np.asarray(np.array(mine) @ np.array(partners).T)


def _goes(stack: Stack, relation: Relation, profiles: Mapping[str, Mapping[str, Profile]]) -> bool:
    """Whether the members go with their own partners, and less with those of other blocks."""
    table = _table(stack, relation, profiles)
    if table is None:
        return False
    others = max(float(_at(table, s).mean()) for s in range(1, len(table)))
    return float(np.median(np.diag(table))) >= HOLDS and float(np.diag(table).mean()) - others >= OWN


def _shift(stack: Stack, relation: Relation, profiles: Mapping[str, Mapping[str, Profile]]) -> Shift | None:
    """The shift under which the members go with the partners, where they do not go with their own."""
    table = _table(stack, relation, profiles)
    if table is None:
        return None
    count, size = len(table), len(relation.partner[stack.members[0].name])
    own = float(np.diag(table).mean())
    by = max(range(1, count), key=lambda s: float(_at(table, s).mean()))
    there = _at(table, by)
    others = [float(_at(table, s).mean()) for s in range(1, count) if s != by]
    z = float(np.sum(_fisher(there) - _fisher(np.diag(table)))) * math.sqrt(size - 3) / math.sqrt(2 * count)
    if own > OWN or float(np.median(there)) < HOLDS or there.min() < OWN or z < SURE or (
            max(others, default=0.0) > float(there.mean()) - OWN):
        return None
    by = by if by <= count // 2 else by - count
    return Shift(stack.pattern, stack.members[0].name, count, by, own, float(there.mean()), relation.beside, z)


def _at(table: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    """Each row's value in the column so many further on, around the end."""
    rows = np.arange(len(table))
    return np.asarray(table[rows, (rows + by) % len(table)])


def _fisher(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.arctanh(np.clip(values, -0.995, 0.995))
