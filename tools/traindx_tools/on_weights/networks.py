"""Which of several networks in one file an optimizer trains: by the names that it keeps, else by the shapes in order.

A file of an adversarial pair, or of actor and critic, holds several parts with an optimizer each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.on_weights.checkpoint import OptimizerState, Part
from traindx_tools.on_weights.parameter_names import shaped
from traindx_tools.on_weights.seen import NORM_SUFFIXES, Seen
from traindx_tools.on_weights.tensor import Tensor

FEWEST = 2
"""Parameters of a network, at least: one shape alone is in many parts."""
_BUFFERS = frozenset({*NORM_SUFFIXES, *NORM_SUFFIXES.values()})


def trained_by(seen: Seen, optimizer: OptimizerState) -> list[Part]:
    """The parts, copies of others left out, whose parameters have the shapes of all moments, in their order."""
    keys = [k for g in optimizer.groups for k in (g.get("params") or ())]
    moments = [shaped(optimizer.state.get(k)) for k in keys]
    shapes = [m.shape for m in moments if m is not None]
    if len(shapes) < FEWEST or len(shapes) < len(keys):
        return []
    return [p for p in networks(seen) if [t.shape for t in parameters(p)] == shapes]


def networks(seen: Seen) -> Iterator[Part]:
    """The parts that are weights of their own."""
    yield from (p for p in seen.checkpoint.parts if not p.auxiliary and not p.copy)


def parameters(part: Part) -> list[Tensor]:
    """Its real tensors, each storage once, without running statistics."""
    once: dict[Any, Tensor] = {}
    for name, tensor in part.tensors.items():
        if tensor.floating and name.replace("/", ".").rpartition(".")[2] not in _BUFFERS:
            once.setdefault(tensor.storage or name, tensor)
    return list(once.values())
