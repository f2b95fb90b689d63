"""Averages of parameters that are taken with themselves, seen among the operations after an optimizer step.

`target.mul_(d).add_(source, alpha=1 - d)`, `target.lerp_(source, 1 - d)` and `target.copy_(source)`, one by one or for
lists of tensors, where target and source are one tensor.
"""

from __future__ import annotations

from typing import Any

import torch

from traindx_tools.on_torch.measures.place_in_memory import place_in_memory
from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.snapshot.tape import Tape


class TapeOfAverages(Tape):  # type: ignore[no-untyped-call]  # torch does not type its modes
    """Notes a step, and which tensors are averaged with themselves meanwhile."""

    def clear(self) -> None:
        """A new step begins."""
        super().clear()
        self._scaled: set[tuple[int, int]] = set()

    def reset(self) -> None:
        """Forgets what was averaged."""
        self.averaged: set[tuple[int, int]] = set()
        self.place: Place | None = None

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def _writes_to_others(self, func: Any, args: Any, kwargs: Any) -> bool:
        name = ops.base_name(func).removeprefix("_foreach_")
        if name in ("mul_", "lerp_", "add_", "copy_") and args:
            self._look(name, _several(args[0]), _several(args[1]) if len(args) > 1 else [], kwargs)
        return super()._writes_to_others(func, args, kwargs)

    def _look(self, name: str, written: list[Any], read: list[Any], kwargs: Any) -> None:
        if name == "mul_":
            if not any(isinstance(r, torch.Tensor) and r.ndim for r in read):
                self._scaled.update(place_in_memory(w) for w in written)
            return
        alpha = kwargs.get("alpha", 1)
        for one, other in zip(written, read, strict=False):
            if not isinstance(other, torch.Tensor) or not one.numel() or place_in_memory(one) != place_in_memory(other):
                continue
            kept = place_in_memory(one) in self._scaled and isinstance(alpha, (int, float)) and 0 < alpha < 1
            if name != "add_" or kept:
                self.place = self.place or here()
                self.averaged.add(place_in_memory(one))


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
