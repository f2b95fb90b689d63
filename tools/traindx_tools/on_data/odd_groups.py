"""Groups of rows (an annotator, a device, a language) in which a number is distributed otherwise.

A group may have a level of its own by design. Worth telling is one whose values become like those of all others by a
plain operation: the ratio of two units, a sign, a logarithm; and, where every group has its own level, one that is off
by the ratio of two units while all others lie close together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_field, by_file, by_folder
from traindx_tools.on_data.entities import unit_apart
from traindx_tools.on_data.odd_parts import ROWS, odd_shard
from traindx_tools.on_data.repairs import repaired
from traindx_tools.on_data.row_statistics import Statistic
from traindx_tools.on_data.shard import Shard

TELLING = ("divide", "negate", "celsius", "fahrenheit", "kelvin", "exp", "log")
"""Operations that no difference by design is; an offset and another spread may be."""
SMALL = 2.0
"""Factors up to which a level is by design: a group that is twice as strict."""
DESIGN = 10.0
"""Factors below which it may be: wages of a country, prices of a shop. Told, and with little weight."""


@dataclass(frozen=True, eq=False)
class OddGroup:
    """Part `part` of a cut, in which a statistic is otherwise."""

    cut: Cut
    part: int
    statistic: Statistic
    mine: Array
    others: Array
    told: str
    """What undoes it, "" where nothing plain does."""
    repair: str


def odd_groups(group: Sequence[Shard], made: Sequence[Statistic], labels: Sequence[str]) -> Iterator[OddGroup]:
    """Of each cut by a field or by words of the files' names the groups that are otherwise."""
    cuts = [c for c in by_file(group) if c.by] + list(by_field(group, labels))
    files = list(by_folder(group))  # a folder is a class as often as an origin: only sides of a sound tell of it
    comparisons = max(1, len(made) * sum(len(c.names) for c in [*cuts, *files]))
    for cut in [*cuts, *files]:
        for statistic in made:
            sides = statistic.field == "the sound" and ("left" in statistic.told)
            if statistic.pairs or statistic.field == cut.by or (cut in files and not sides):
                continue
            parts = _parts(cut, statistic)
            found = odd_shard(parts, comparisons)
            if found is not None:
                yield _otherwise(cut, found.index, statistic, parts)
            elif statistic.measured:
                yield from _off_by_a_unit(cut, statistic, parts)


def _parts(cut: Cut, statistic: Statistic) -> list[Array]:
    member = np.concatenate([m[r] for m, r in zip(cut.member, statistic.rows, strict=True)])
    values = np.concatenate(statistic.parts)
    return [values[member == p] for p in range(len(cut.names))]


def _rest(parts: Sequence[Array], index: int) -> Array:
    return np.concatenate([p for i, p in enumerate(parts) if i != index])


def _otherwise(cut: Cut, index: int, statistic: Statistic, parts: Sequence[Array]) -> OddGroup:
    mine, others = parts[index], _rest(parts, index)
    undone = repaired(mine, others)
    told = undone is not None and undone.name.startswith(TELLING) and (
        statistic.measured or undone.name == "negate") and factor_of(undone.name) > SMALL
    return OddGroup(cut, index, statistic, mine, others, undone.told if told and undone is not None else "",
                    undone.name if told and undone is not None else "")


def factor_of(name: str) -> float:
    """The factor of a repair from 1 on, infinite of any other operation."""
    if not name.startswith("divide by "):
        return math.inf
    factor = float(name.removeprefix("divide by "))
    return max(factor, 1.0 / factor)


def _off_by_a_unit(cut: Cut, statistic: Statistic, parts: Sequence[Array]) -> Iterator[OddGroup]:
    """Where groups have levels of their own: both level and spread of one are off by the same ratio of units."""
    if min(map(len, parts)) < ROWS:
        return
    levels = np.array([float(np.median(np.abs(p[np.isfinite(p)]))) if np.isfinite(p).any() else 0.0 for p in parts])
    if not (levels > 0).all():
        return
    far = int(np.argmax(np.abs(np.log(levels) - np.median(np.log(levels)))))
    found = unit_apart(levels, far)
    if found is None or max(found[0], 1.0 / found[0]) <= SMALL:
        return
    made = np.sort(parts[far][np.isfinite(parts[far])] / found[0])
    others = _rest(parts, far)
    low, high = np.nanquantile(others, (0.01, 0.99))
    if float(np.mean((made >= low) & (made <= high))) > 0.9:
        yield OddGroup(cut, far, statistic, parts[far], others,
                       f"divided by {found[0]:g} it lies among all others: {found[1]}", f"divide by {found[0]:g}")
