"""A few values of each tensor that a module holds, by which they are known again: on its device, without waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.structure import modules_of

MOST_TENSORS, MOST_VALUES = 64, 1024
"""Of each of so many tensors so many values are kept: 256 KiB in single precision."""
FEWEST_DISTINCT = 4
"""Different values from which equal ones are no chance: zeros, ones and the like are everywhere."""


@dataclass(frozen=True, eq=False)
class Values:
    """The first values of a tensor."""

    shape: tuple[int, ...]
    first: torch.Tensor

    def same(self, other: Values) -> bool:
        """Bit for bit, as far as they go."""
        return (self.shape == other.shape and self.first.dtype == other.first.dtype
                and torch.equal(self.first.cpu(), other.first.cpu()))

    def distance(self, other: Values) -> float:
        """How far `other` is from this one, as a share of this one's norm."""
        mine, theirs = (v.first.float().cpu() for v in (self, other))
        norm = float(mine.norm())
        return float((theirs - mine).norm()) / norm if norm else 0.0

    @property
    def telling(self) -> bool:
        """Whether they are no other tensor's."""
        return len(set(self.first[:256].tolist())) >= FEWEST_DISTINCT


def held_values(model: torch.nn.Module) -> list[Values]:
    """Of parameters and buffers of floats, and of what a frozen script module holds as constants."""
    found: list[Values] = []
    for tensor in _tensors(model):
        if len(found) == MOST_TENSORS:
            break
        if _is_plain(tensor):
            with torch.no_grad():
                found.append(Values(tuple(tensor.shape), tensor.detach().reshape(-1)[:MOST_VALUES].clone()))
    return found


def records() -> bool:
    """Whether what is computed now is written down for later (a trace, an export): nothing of ours may be in it."""
    modes = getattr(torch._C, "_len_torch_dispatch_stack", int)
    return bool(torch._C._get_tracing_state() is not None or modes() or torch.compiler.is_compiling())


def _is_plain(tensor: torch.Tensor) -> bool:
    wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", None)
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided
            and tensor.is_floating_point() and tensor.numel() >= FEWEST_DISTINCT and tensor.device.type != "meta"
            and not (wrapped is not None and wrapped(tensor)))


def _tensors(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    for _, module in modules_of(model):
        for held in (*module._parameters.values(), *module._buffers.values()):
            if isinstance(held, torch.Tensor):
                yield held
    if isinstance(model, torch.jit.ScriptModule) and hasattr(model, "graph"):
        yield from _constants(model.graph)


def _constants(block: Any) -> Iterator[torch.Tensor]:
    for node in block.nodes():
        if node.kind() == "prim::Constant" and node.hasAttribute("value") and node.kindOf("value") == "t":
            yield node.t("value")
        for inner in node.blocks():
            yield from _constants(inner)
