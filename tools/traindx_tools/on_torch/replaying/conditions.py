"""Under which a pass is run again: precision, modes, rows. Each counts what it took hold of."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Conditions:
    """What is otherwise than in the step itself; nothing by default."""

    precision: torch.dtype | None = None
    """Floating values of less precision are raised to this."""
    autocast: bool = True
    dropout: bool = True
    batch_statistics: bool = True
    zeroed: bool = False
    deterministic: bool = False
    rows: Sequence[int] | None = None
    """The rows of the batch that stand in the places of its own."""

    def raised(self, dtype: torch.dtype) -> torch.dtype:
        """What becomes of a dtype."""
        if self.precision is torch.float64 and dtype.is_floating_point:
            return torch.float64
        return torch.float32 if self.precision is torch.float32 and dtype in HALVES else dtype

    def lifted(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in that dtype."""
        return tensor.to(self.raised(tensor.dtype)) if tensor.is_floating_point() else tensor

    @property
    def plain(self) -> bool:
        """Autocast is left as it is."""
        return self.autocast and self.precision is None


PLAIN = Conditions()
CONDITIONS: dict[str, Conditions] = {
    "float32": Conditions(precision=torch.float32),
    "no-autocast": Conditions(autocast=False),
    "float64": Conditions(precision=torch.float64),
    "no-dropout": Conditions(dropout=False),
    "batch-norm-eval": Conditions(batch_statistics=False),
    "inputs-zeroed": Conditions(zeroed=True),
    "deterministic": Conditions(deterministic=True),
}
"""By the name of the change."""

class NoDropout(TorchFunctionMode):
    """Dropout of whatever spelling drops nothing while it is on, in this thread."""

    def __init__(self, took: Callable[[], None]) -> None:
        super().__init__()
        self._took = took

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Calls of dropout with the switch turned off."""
        named = dict(kwargs or {})
        if func in _DROPOUTS:
            if _drops(args, named):
                self._took()
            return args[0] if args else named["input"]
        if func is functional.scaled_dot_product_attention:
            at = 4
            if (args[at] if len(args) > at else named.get("dropout_p", 0.0)) > 0:
                self._took()
                args = (*args[:at], 0.0, *args[at + 1:]) if len(args) > at else args
                named.update({"dropout_p": 0.0} if len(args) <= at else {})
        return func(*args, **named)


_DROPOUTS = (functional.dropout, functional.dropout1d, functional.dropout2d, functional.dropout3d,
             functional.alpha_dropout, functional.feature_alpha_dropout, torch.dropout)


def _drops(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    p = args[1] if len(args) > 1 else named.get("p", 0.5)
    training = args[2] if len(args) > 2 else named.get("training", named.get("train", True))
    return bool(training) and p > 0


def set_modes(module: torch.nn.Module, conditions: Conditions, took: Callable[[], None]) -> None:
    """Modes of a copy."""
    for part in module.modules():
        if not conditions.batch_statistics and isinstance(part, _BatchNorm) and part.training \
                and part.track_running_stats:
            part.eval()
            took()
        if not conditions.dropout and part.training:
            several = isinstance(part, torch.nn.RNNBase) and part.num_layers > 1
            held: Any = part
            if (several or isinstance(part, torch.nn.MultiheadAttention)) and held.dropout > 0:
                held.dropout = 0.0
                took()


@contextlib.contextmanager
def surrounding(conditions: Conditions, took: Callable[[], None]) -> Iterator[None]:
    """What is set around the whole pass, and set back."""
    default = torch.get_default_dtype()
    cudnn: Any = torch.backends.cudnn
    before = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
              cudnn.deterministic, cudnn.benchmark)
    with contextlib.ExitStack() as stack:
        if not conditions.dropout:
            stack.enter_context(NoDropout(took))
        try:
            if conditions.precision is torch.float64:
                torch.set_default_dtype(torch.float64)
            if conditions.deterministic:
                torch.use_deterministic_algorithms(True, warn_only=True)
                cudnn.deterministic, cudnn.benchmark = True, False
            yield
        finally:
            torch.set_default_dtype(default)
            if conditions.deterministic:
                torch.use_deterministic_algorithms(before[0], warn_only=before[1])
                cudnn.deterministic, cudnn.benchmark = before[2], before[3]
