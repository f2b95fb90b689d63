"""Where a state came from: the tensors of what was read from a file are known again without being kept alive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.multiprocessing import reductions

MOST_TENSORS = 20_000
MOST_PARTS = 64


class Origin:
    """What was read from one file: the memory of its tensors, and its parts by identity."""

    def __init__(self, value: Any) -> None:
        self._memory: dict[int, Any] = {}
        for number, tensor in enumerate(tensors_in(value)):
            if number >= MOST_TENSORS:
                break
            if tensor.numel() and tensor.layout == torch.strided:
                storage = tensor.untyped_storage()
                self._memory[storage._cdata] = _weak(storage)
        parts = list(value.values())[:MOST_PARTS] if isinstance(value, Mapping) else []
        self._parts = {id(p): _keys(p) for p in (value, *parts) if isinstance(p, (Mapping, list)) and p}

    def holds(self, state: Any) -> bool:
        """Whether a state is it, a part of it, or the same tensors under other names (any of the first 64)."""
        if id(state) in self._parts and self._parts[id(state)] == _keys(state):
            return True
        for number, tensor in enumerate(tensors_in(state)):
            if number >= MOST_PARTS:
                return False
            if tensor.layout == torch.strided and self.has(tensor):
                return True
        return False

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor looks at memory that was read."""
        weak = self._memory.get(tensor.untyped_storage()._cdata)
        return weak is not None and not weak.expired()


def tensors_in(value: Any, depth: int = 5) -> Iterator[torch.Tensor]:
    """Tensors in nested mappings, lists and tuples."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping) and depth:
        for part in value.values():
            yield from tensors_in(part, depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for part in value:
            yield from tensors_in(part, depth - 1)


def _keys(part: Any) -> tuple[str, ...]:
    return tuple(map(str, list(part)[:8])) if isinstance(part, Mapping) else ()


def _weak(storage: Any) -> Any:
    kind: Any = reductions.StorageWeakRef
    return kind(storage)
