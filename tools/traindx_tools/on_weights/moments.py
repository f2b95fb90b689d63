"""The moments of optimizers, measured once: of torch by the number of the parameter, of trees by its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_weights.checkpoint import Checkpoint, OptimizerState
from traindx_tools.on_weights.moment_names import FIRST, SECOND, paired
from traindx_tools.on_weights.statistics import Stats, measure
from traindx_tools.on_weights.tensor import Tensor

MOST_READ = 2**28
"""Values of moments that are looked at."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What an optimizer keeps of one parameter, by its name there. `optimizer`: None in a tree (optax)."""

    optimizer: OptimizerState | None
    key: Any
    """The number of the parameter, or its path."""
    where: str
    stats: Mapping[str, Stats]
    group: Mapping[str, Any]
    told: str = ""
    """How it was told where no name says so."""

    @property
    def first(self) -> Stats | None:
        """The mean of the gradients."""
        return next((self.stats[n] for n in FIRST if n in self.stats), None)

    @property
    def second(self) -> Stats | None:
        """The mean of their squares."""
        return next((self.stats[n] for n in SECOND if n in self.stats), None)


def measured_moments(checkpoint: Checkpoint) -> Iterator[Moments]:
    """Each parameter's moments of real numbers, as long as `MOST_READ` suffices. Raises UnreadableInput."""
    left = MOST_READ
    names = ((p.first.key or p.first.name, p.second.key or p.second.name) for p in checkpoint.moment_pairs)
    told = {second: f"{second} beside {first}, told by shape and sign" for first, second in names}
    for optimizer, key, where, tensors, group in (
            *_numbered(checkpoint), *_in_trees(checkpoint), *_without_names(checkpoint)):
        stats = {}
        for name, tensor in tensors.items():
            if tensor.floating and 1 < tensor.size <= left:
                left -= tensor.size
                stats[name] = measure(tensor)
        if stats:
            yield Moments(optimizer, key, where, stats, group, told.get(where, ""))


_Found = tuple[OptimizerState | None, Any, str, Mapping[str, Tensor], Mapping[str, Any]]


def _numbered(checkpoint: Checkpoint) -> Iterator[_Found]:
    for optimizer in checkpoint.optimizers:
        for group in optimizer.groups:
            for key in group.get("params") or ():
                state = optimizer.state.get(key)
                if isinstance(state, Mapping):
                    tensors = {str(n): t for n, t in state.items() if isinstance(t, Tensor)}
                    yield optimizer, key, f"{optimizer.key}.state.{key}".lstrip("."), tensors, group


def _in_trees(checkpoint: Checkpoint) -> Iterator[_Found]:
    """Pairs of moments of one weight, in parts that are an optimizer's."""
    for part in checkpoint.parts:
        if part.auxiliary:
            for place, kinds in paired(part.tensors, within=True).items():
                named = next(iter(kinds.values()))[0]
                yield None, named.weight, f"{part.key}.{place}".lstrip("."), {k: t for k, (_, t) in kinds.items()}, {}


def _without_names(checkpoint: Checkpoint) -> Iterator[_Found]:
    for pair in checkpoint.moment_pairs:
        yield None, pair.weight, pair.second.key or pair.second.name, {"mu": pair.first, "nu": pair.second}, {}
