"""Which module keeps how much for the backward pass: the activations of one step, by module path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class SavedActivations:
    """Bytes saved for backward by the innermost module that was running, parameters and buffers left out."""

    by_module: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Bytes over all modules."""
        return sum(self.by_module.values())

    def largest(self, most: int = 5) -> list[tuple[str, int]]:
        """(module path, bytes), the largest first."""
        return sorted(self.by_module.items(), key=lambda item: -item[1])[:most]


@contextmanager
def saved_activations(model: torch.nn.Module) -> Iterator[SavedActivations]:
    """While it is open, tensors that autograd saves in `model`'s forward are counted, each storage once.

    Nothing is changed: what is packed is unpacked as it was. Gradients and results stay bitwise the same. A region
    compiled by `torch.compile` is counted as its outermost module's.
    """
    saved = SavedActivations()
    own = {_key(t) for t in (*model.parameters(), *model.buffers())}
    seen: set[int] = set()
    stack: list[str] = ["(outside)"]

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        key = _key(tensor)
        if key and key not in own and key not in seen:
            seen.add(key)
            place = stack[-1]
            saved.by_module[place] = saved.by_module.get(place, 0) + tensor.untyped_storage().nbytes()
        return tensor

    handles = [h for path, module in model.named_modules() for h in _bracket(path or "(root)", module, stack)]
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            yield saved
    finally:
        for handle in handles:
            handle.remove()


def _bracket(path: str, module: torch.nn.Module, stack: list[str]) -> list[Any]:
    def enter(*_: Any) -> None:
        stack.append(path)

    def leave(*_: Any) -> None:
        if len(stack) > 1:
            stack.pop()

    return [module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)]


def _key(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def table(saved: Mapping[str, int]) -> str:
    """`layers.3 12.0 MiB, head 4.0 MiB`."""
    return ", ".join(f"{path} {size / 2**20:,.1f} MiB" for path, size in saved.items())
