"""What tensors tell of their partners: rows of a matrix and its bias, columns of matrices that read the same input.

A gradient is the product of what comes in and what comes back, so the squares of gradients of a matrix rise and fall
along its rows as those of its bias do, and along its columns as those of the matrices beside it that take the same
input. Such a relation is learnt over all layers of a file and then asked of each of them; a tensor that does not keep
it, and keeps it in the place of another one of its shape, is in the wrong place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.seen import stacks_of
from traindx_tools.on_weights.statistics import Stats

Profile = NDArray[np.float64]
FEWEST = 4
"""Members that keep a relation, before one that does not is odd."""
HOLDS = 0.5
"""Correlation of the typical member with its own partner."""
OWN = 0.25
"""How far that is above the correlation with the partner of another member."""
LOST = 0.5
"""Share of the typical correlation that a tensor in the wrong place keeps at most."""
SHORTEST = 12
"""Values of a profile."""
MOST_VECTOR = 2**20
SURE = 8.0
"""Standard errors (Fisher's z) by which two tensors fit each other's place better, over all relations together."""
MOST_MEMBERS = 400
"""Tensors of one shape that are compared with each other."""


@dataclass(frozen=True, eq=False)
class Relation:
    """Of each member the profile of its partner, which is compared with the member's own along `axis`."""

    axis: str
    """rows, columns."""
    beside: str
    """What the partner is."""
    partner: Mapping[str, Profile]


@dataclass(frozen=True)
class Exchange:
    """Two tensors that fit each other's place. Correlations are means over the relations."""

    one: str
    other: str
    here: float
    """With the partners of their own places."""
    there: float
    """With those of each other's."""
    usual: float
    beside: tuple[str, ...]
    z: float
    mirrored: bool = False
    """Whether the partners, exchanged, would tell the same: matrices or their biases."""


def profiles_of(stats: Stats) -> Mapping[str, Profile]:
    """Logarithms of the norms of rows and columns, or of the magnitudes of a vector, each with mean 0 and norm 1."""
    if stats.nan or stats.inf or stats.constant:
        return {}
    if stats.tensor.matrix:
        made = {"rows": np.sqrt(stats.row_squares), "columns": np.sqrt(stats.columns.squares)}
    elif stats.size <= MOST_VECTOR:
        made = {"rows": np.abs(stats.tensor.load().astype(np.float64).reshape(-1))}
    else:
        return {}
    return {axis: p for axis, v in made.items() if (p := standard(v)) is not None}


def standard(values: Profile) -> Profile | None:
    """Logarithms with mean 0 and norm 1; None where most are zero or all alike."""
    if len(values) < SHORTEST or float((values > 0).mean()) < 0.9:
        return None
    logs = np.log(np.maximum(values, float(values[values > 0].min())))
    logs = np.clip(logs, *np.quantile(logs, (0.02, 0.98)))
    logs = logs - logs.mean()
    size = float(np.linalg.norm(logs))
    return logs / size if size > 1e-3 * math.sqrt(len(logs)) else None


def exchanged(stats: Sequence[Stats]) -> Iterator[Exchange]:
    """Pairs of tensors of one shape that stand in each other's place, the surest first, each tensor once."""
    profiles = {s.name: profiles_of(s) for s in stats}
    relations = [r for r in relations_of(stats, profiles) if _holds(r, profiles)]
    groups: dict[tuple[int, ...], list[str]] = {}
    for one in stats:
        groups.setdefault(one.tensor.shape, []).append(one.name)
    found = [e for names in groups.values() if 2 <= len(names) <= MOST_MEMBERS
             for e in _of_shape(names, relations, profiles)]
    told: set[str] = set()
    modules: set[frozenset[str]] = set()
    for exchange in sorted(found, key=lambda e: (-len(e.beside), -e.z)):
        both = frozenset(n.rpartition(".")[0] for n in (exchange.one, exchange.other))
        if told & {exchange.one, exchange.other} or both in modules:
            continue  # where a matrix left its bias, the bias has left its matrix
        told |= {exchange.one, exchange.other}
        modules.add(both)
        mirrored = len(exchange.beside) == 1 and any(
            {e.one.rpartition(".")[0], e.other.rpartition(".")[0]} == both for e in found if e is not exchange)
        yield replace(exchange, mirrored=mirrored)


def relations_of(stats: Sequence[Stats], profiles: Mapping[str, Mapping[str, Profile]]) -> list[Relation]:
    """All that may hold between a tensor and what stands beside it."""
    return [*_with_bias(stats, profiles), *_within_blocks(stats, profiles)]


def _with_bias(stats: Sequence[Stats], profiles: Mapping[str, Mapping[str, Profile]]) -> Iterator[Relation]:
    """Rows of each matrix against the vector beside it under the same module, both ways."""
    by_module: dict[str, list[Stats]] = {}
    for one in stats:
        by_module.setdefault(one.name.rpartition(".")[0], []).append(one)
    of_matrix, of_vector = {}, {}
    for members in by_module.values():
        matrices = [s for s in members if s.tensor.matrix]
        vectors = [s for s in members if not s.tensor.matrix and "rows" in profiles[s.name]]
        if len(matrices) == 1 and len(vectors) == 1 and vectors[0].size == matrices[0].tensor.rows:
            of_matrix[matrices[0].name] = profiles[vectors[0].name]["rows"]
            if "rows" in profiles[matrices[0].name]:
                of_vector[vectors[0].name] = profiles[matrices[0].name]["rows"]
    yield Relation("rows", "their biases", of_matrix)
    yield Relation("rows", "their matrices", of_vector)


def _within_blocks(stats: Sequence[Stats], profiles: Mapping[str, Mapping[str, Profile]]) -> Iterator[Relation]:
    """Rows and columns of each matrix of a block against those of the other matrices of the block."""
    stacks = [s for s in stacks_of([s for s in stats if s.tensor.matrix]) if len(s) >= FEWEST]
    for stack in stacks:
        for beside in stacks:
            if beside is stack or beside.pattern.partition("*")[0] != stack.pattern.partition("*")[0]:
                continue
            at = dict(zip(beside.indexes, beside.members, strict=True))
            pairs = [(m, at[i]) for i, m in zip(stack.indexes, stack.members, strict=True) if i in at]
            for axis in ("rows", "columns"):
                for other in ("rows", "columns"):
                    partner = {m.name: profiles[p.name][other] for m, p in pairs if other in profiles[p.name]
                               and axis in profiles[m.name]
                               and len(profiles[p.name][other]) == len(profiles[m.name][axis])}
                    if len(partner) >= FEWEST:
                        yield Relation(axis, f"the {other} of {beside.pattern}", partner)


def _own(relation: Relation, name: str, profiles: Mapping[str, Mapping[str, Profile]]) -> float | None:
    mine, partner = profiles[name].get(relation.axis), relation.partner.get(name)
    return float(mine @ partner) if mine is not None and partner is not None and len(mine) == len(partner) else None


def _usual(relation: Relation, profiles: Mapping[str, Mapping[str, Profile]]) -> float:
    own = [o for n in relation.partner if (o := _own(relation, n, profiles)) is not None]
    return float(np.median(own)) if len(own) >= FEWEST else 0.0


def _holds(relation: Relation, profiles: Mapping[str, Mapping[str, Profile]]) -> bool:
    """Whether members go with their own partner, and less with those of others."""
    usual = _usual(relation, profiles)
    if usual < HOLDS:
        return False
    names = list(relation.partner)
    crossed = [float(profiles[a][relation.axis] @ relation.partner[b])
               for a, b in zip(names, names[1:] + names[:1], strict=True)
               if relation.axis in profiles[a] and len(profiles[a][relation.axis]) == len(relation.partner[b])]
    return not crossed or float(np.median(crossed)) <= usual - OWN


def _of_shape(names: Sequence[str], relations: Sequence[Relation], profiles: Mapping[str, Mapping[str, Profile]]
              ) -> Iterator[Exchange]:
    """Pairs of members that lost their relations and have each other's."""
    of = {n: [(r, own, _usual(r, profiles)) for r in relations if (own := _own(r, n, profiles)) is not None]
          for n in names}
    lost = [n for n in names if of[n] and np.mean([own for _, own, _ in of[n]])
            <= LOST * np.mean([u for *_, u in of[n]])]
    for at, one in enumerate(lost):
        for other in lost[at + 1:]:
            here, there, z = [], [], 0.0
            for name, instead in ((one, other), (other, one)):
                for relation, own, _ in of[name]:
                    moved = float(profiles[instead][relation.axis] @ relation.partner[name]) if (
                        relation.axis in profiles[instead]) else 0.0
                    here.append(own)
                    there.append(moved)
                    z += (_fisher(moved) - _fisher(own)) * math.sqrt(len(relation.partner[name]) - 3)
            usual = float(np.mean([u for n in (one, other) for *_, u in of[n]]))
            z /= math.sqrt(2 * len(here))
            if z >= SURE and float(np.mean(there)) >= (1 - LOST / 2) * usual:
                beside = tuple(dict.fromkeys(r.beside for n in (one, other) for r, *_ in of[n]))
                yield Exchange(one, other, float(np.mean(here)), float(np.mean(there)), usual, beside, z)


def _fisher(correlation: float) -> float:
    return math.atanh(min(0.995, max(-0.995, correlation)))
