"""What the memory of a training consists of: parameters, gradients, optimizer state, buffers, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

MIB = 2**20


@dataclass(frozen=True)
class MemoryBreakdown:
    """Bytes by kind on one device type, and parameters' bytes by module path (first two levels).

    `other` is what the allocator holds beside them: activations, temporaries, the batch, the CUDA caching allocator's
    unused blocks are not in it. `other`, `allocated`, `reserved` and `peak` are None where there is no allocator to ask
    (a CPU): only what is counted by storage is known there.
    """

    parameters: int
    gradients: int
    optimizer: int
    buffers: int
    by_module: Mapping[str, int]
    allocated: int | None = None
    reserved: int | None = None
    peak: int | None = None

    @property
    def counted(self) -> int:
        """Bytes of parameters, gradients, optimizer state and buffers together."""
        return self.parameters + self.gradients + self.optimizer + self.buffers

    @property
    def other(self) -> int | None:
        """Bytes allocated beyond them: at the peak, mostly activations kept for backward."""
        return None if self.peak is None else max(0, self.peak - self.counted)

    def in_words(self) -> str:
        """One clause with MiB figures, the largest kind first."""
        kinds = {"parameters": self.parameters, "gradients": self.gradients, "optimizer state": self.optimizer,
                 "buffers": self.buffers, "activations and temporaries at the peak": self.other or 0}
        ranked = sorted(((n, name) for name, n in kinds.items() if n), reverse=True)
        return ", ".join(f"{name} {n / MIB:,.1f} MiB" for n, name in ranked) or "nothing"


def memory_breakdown(models: Iterable[torch.nn.Module],
                     optimizers: Iterable[torch.optim.Optimizer] = ()) -> MemoryBreakdown:
    """Counts storage of models and optimizers, each storage once (tied weights, views), and asks CUDA for the rest."""
    seen: set[int] = set()
    models = list(models)
    by_module: dict[str, int] = {}
    parameters = gradients = 0
    for model in models:
        for name, p in model.named_parameters():
            size = _bytes(p, seen)
            parameters += size
            place = ".".join(name.split(".")[:-1][:2]) or "(root)"
            by_module[place] = by_module.get(place, 0) + size
            gradients += _bytes(p.grad, seen)
    buffers = sum(_bytes(b, seen) for m in models for b in m.buffers())
    optimizer = sum(_bytes(t, seen) for o in optimizers for state in o.state.values() for t in _tensors(state))
    known = MemoryBreakdown(parameters, gradients, optimizer, buffers, by_module)
    cuda: Any = torch.cuda
    if not cuda.is_initialized():
        return known
    return replace(known, allocated=int(cuda.memory_allocated()), reserved=int(cuda.memory_reserved()),
                   peak=int(cuda.max_memory_allocated()))


def _tensors(state: Any) -> Iterable[torch.Tensor]:
    values = state.values() if isinstance(state, Mapping) else state if isinstance(state, (list, tuple)) else ()
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (Mapping, list, tuple)):
            yield from _tensors(value)


def _bytes(tensor: torch.Tensor | None, seen: set[int]) -> int:
    if tensor is None:
        return 0
    try:
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse and meta tensors
        return tensor.numel() * tensor.element_size()
    if not key or key in seen:
        return 0
    seen.add(key)
    return int(storage.nbytes())
