"""Which constants a model compares its ids with: seen in a copy that answers once more."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from traindx_tools.on_torch.captured.trial import Trial
from traindx_tools.on_torch.nonfinite import operations as ops

_COMPARING = frozenset({"eq", "ne", "eq_", "ne_"})


class _Compared(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes numbers that what looks at one memory is compared with."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._memory = tensor.untyped_storage()._cdata
        self.found: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Runs the operation and notes it."""
        if ops.base_name(func) in _COMPARING and len(args) == 2 and isinstance(args[0], torch.Tensor):
            self._note(*args)
        return func(*args, **(kwargs or {}))

    def _note(self, one: torch.Tensor, other: Any) -> None:
        if one.is_floating_point() or one.untyped_storage()._cdata != self._memory:
            return
        if isinstance(other, torch.Tensor) and other.numel() == 1 and other.device.type == "cpu":
            other = other.item()
        if isinstance(other, int):
            self.found.add(int(other))


def compared_with(trial: Trial, name: str) -> set[int]:
    """The whole numbers that an argument of ids is compared with while the model computes."""
    mode = _Compared(trial.call.tensors[name])
    with mode:
        trial.ask(trial.call)
    return mode.found
