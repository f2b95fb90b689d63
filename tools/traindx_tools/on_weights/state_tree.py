"""All tensors of a checkpoint by their place in the file, moments of optimizers under their own names; and which whole
branches of that tree are the same to the bit in another file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_weights.checkpoint import Checkpoint, OptimizerState
from traindx_tools.on_weights.tensor import CHUNK, Tensor

FEWEST = 3
"""Tensors below which a branch may have had no gradient."""


@dataclass(frozen=True)
class Branch:
    """A part of the tree with all that lies under it."""

    path: str
    keys: tuple[str, ...]


def leaves(checkpoint: Checkpoint) -> Mapping[str, Tensor]:
    """Real tensors of more than one value by their whole name; `optimizer.exp_avg.3` for a moment of parameter 3."""
    found = {key: t for p in checkpoint.parts for n, t in p.tensors.items()
             if (key := (t.key or n).replace("/", ".")) and t.floating and t.size > 1}
    for optimizer in checkpoint.optimizers:
        found |= dict(_moments(optimizer))
    return found


def _moments(optimizer: OptimizerState) -> Iterator[tuple[str, Tensor]]:
    head = optimizer.key or "optimizer"
    for key, state in optimizer.state.items():
        for name, value in state.items() if isinstance(state, Mapping) else ():
            if isinstance(value, Tensor) and value.floating and value.size > 1:
                yield f"{head}.{name}.{key}", value


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same to the bit; reading ends where they differ. Raises UnreadableInput."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.storage is not None and one.storage == other.storage:
        return True
    sources = (t.source.parts(0, t.nbytes, CHUNK // 8) for t in (one, other))
    return all(np.array_equal(a, b) for a, b in zip(*sources, strict=False))


def still_branches(keys: Iterable[str], still: frozenset[str]) -> list[Branch]:
    """The highest branches all of whose leaves are among `still`."""
    held: dict[str, list[str]] = {}
    for key in keys:
        parts = key.split(".")
        for depth in range(1, len(parts)):
            held.setdefault(".".join(parts[:depth]), []).append(key)
    whole = {p: tuple(names) for p, names in held.items() if all(n in still for n in names)}
    return [Branch(p, names) for p, names in whole.items() if p.rpartition(".")[0] not in whole]
