"""How modules are used in one forward pass: who is called, with gradients or without, and whose output goes where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.multiprocessing import reductions


class Usage:
    """Listens to every module for a few forward passes, as `Scene.inner`."""

    def __init__(self) -> None:
        self.with_gradients: dict[int, torch.nn.Module] = {}
        """Modules called while gradients were on, by id, in the order of their first call."""
        self.without_gradients: set[int] = set()
        self.consumed: set[int] = set()
        """Modules whose output, or a view of it, was given to a module that was called later."""
        self._made: dict[int, tuple[Any, int]] = {}

    def forget(self) -> None:
        """What was made in a pass is of no use after it."""
        self._made.clear()

    def called(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A module has returned."""
        if not torch.is_grad_enabled():
            self.without_gradients.add(id(module))
            return
        self.with_gradients.setdefault(id(module), module)
        for tensor in _tensors((*args, *kwargs.values())):
            made = self._made.get(tensor.untyped_storage()._cdata)
            if made is not None and not made[0].expired() and made[1] != id(module):
                self.consumed.add(made[1])
        if next(module.children(), None) is None:
            for tensor in _tensors(output):
                storage = tensor.untyped_storage()
                self._made[storage._cdata] = (_weak(storage), id(module))


def _weak(storage: Any) -> Any:
    """A reference that keeps the identity of a storage from being used again, and not its memory."""
    kind: Any = reductions.StorageWeakRef
    return kind(storage)


def _tensors(value: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
            yield value
    elif isinstance(value, (tuple, list)) and depth:
        for part in value:
            yield from _tensors(part, depth - 1)
    elif isinstance(value, dict) and depth:
        for part in value.values():
            yield from _tensors(part, depth - 1)
