"""The moments of two tensors of one shape stand in each other's place.

The mean of squared gradients of a matrix rises and falls along its rows as that of its bias does, and along its columns
as those of the matrices that read the same input do. Where nearly all tensors of a file keep such relations, and two
of one shape keep none of their own and each those of the other, a loader or a conversion has exchanged them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.moments import Moments
from traindx_tools.on_weights.partners import FEWEST, HOLDS, LOST, SURE, Exchange, exchanged
from traindx_tools.on_weights.seen import NORM_SUFFIXES, Seen
from traindx_tools.on_weights.shifted_partners import Shift, shifts
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W128",
    name="moments-exchanged",
    title="The moments of two tensors stand in each other's place",
    severity=Severity.HIGH,
    sees="squared gradients along rows and columns of each tensor against those of its bias and its block",
    matters="Each step of both tensors is scaled by the gradients of the other one: training jumps after a resume.",
    alike=("moments of few steps, and of layers without biases that share no input: nothing is said",
           "tied tensors, and layers that get the same gradients"),
    confirm=("compare the order of the parameters in the optimizer with that of an earlier checkpoint",
             "exchange both states in a copy, resume, and compare the first losses"),
    thresholds={
        "holds": Threshold(HOLDS, "correlation of logarithms", "of the typical tensor with its own partner"),
        "lost": Threshold(LOST, "of the typical correlation", "that a tensor in the wrong place keeps at most"),
        "sure": Threshold(SURE, "standard errors of Fisher's z", "by which both fit each other's place better"),
        "fewest": Threshold(FEWEST, "tensors", "that keep a relation, before one that does not is odd"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """A finding for each pair."""
    if not seen.main or not seen.moments:
        return
    by_name = moments_by_name(seen)
    stats = [_under(m.second, name) for name, m in by_name.items() if m.second is not None]
    moved = list(shifts(stats))
    yield from (_shifted(seen, by_name, found) for found in moved)
    stacks = tuple(found.pattern.partition("*")[0] for found in moved)
    for pair in exchanged(stats):
        if not stacks or not pair.one.startswith(stacks):  # two neighbours of a shifted stack look exchanged
            yield _finding(seen, by_name, pair)


def _shifted(seen: Seen, by_name: Mapping[str, Moments], found: Shift) -> Finding:
    """The moments of a stack under the names of its neighbours."""
    return RULE.finding(
        f"the moments of the {found.blocks} blocks of {found.pattern} in {seen.path} are shifted by {abs(found.by)}: "
        f"they go with {found.beside} of the block {'after' if found.by > 0 else 'before'} with a correlation of "
        f"{found.there:.2f}, and of {found.here:.2f} with those of their own; or these have been shifted",
        Location(file=seen.path, module=by_name[found.first].where), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "shifted", "name": found.first, "by": found.by, "blocks": found.blocks,
                  "here": round(found.here, 3), "there": round(found.there, 3), "z": round(found.z, 1)})


def moments_by_name(seen: Seen) -> Mapping[str, Moments]:
    """The moments by the name of their weight: as the optimizer keeps it, by the order of the weights, or by path."""
    numbered = [m for m in seen.moments if m.optimizer is not None]
    trees = {str(m.key): m for m in seen.moments if m.optimizer is None}
    keys: list[Any] = []
    kept: dict[Any, str] = {}
    for optimizer in {id(m.optimizer): m.optimizer for m in numbered}.values():
        assert optimizer is not None
        for group in optimizer.groups:
            own = list(group.get("params") or ())
            keys += own
            kept |= dict(zip(own, map(str, group.get("param_names") or ()), strict=False))
    if not kept:
        weights = [n for n, t in seen.part.tensors.items()
                   if t.floating and n.rpartition(".")[2] not in {*NORM_SUFFIXES, *NORM_SUFFIXES.values()}]
        kept = dict(zip(sorted(keys), weights, strict=True)) if len(keys) == len(weights) and all(
            isinstance(k, int) for k in keys) else {}
    named = {kept[m.key]: m for m in numbered if m.key in kept}
    fitting = all((t := seen.part.tensors.get(n)) is None or m.second is None or t.shape == m.second.tensor.shape
                  for n, m in named.items())
    return named if named and fitting else trees if trees else {}


def _under(stats: Stats, name: str) -> Stats:
    """The same measurements under the name of the weight."""
    return replace(stats, tensor=replace(stats.tensor, name=name))


def _finding(seen: Seen, by_name: Mapping[str, Moments], found: Exchange) -> Finding:
    where = by_name[found.one].where
    return RULE.finding(
        f"the moments of {found.one} and {found.other} in {seen.path} have been exchanged: their squared gradients go "
        f"with those of {' and '.join(found.beside[:2])} with a correlation of {found.here:.2f}, and of "
        f"{found.there:.2f} in each other's place (usual: {found.usual:.2f})"
        f"{f'; or {found.beside[0]} have been' if found.mirrored else ''}",
        Location(file=seen.path, module=where), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "exchanged", "name": found.one, "other": found.other, "here": round(found.here, 3),
                  "there": round(found.there, 3), "z": round(found.z, 1)})
