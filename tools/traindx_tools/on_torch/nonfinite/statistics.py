"""What the values of a tensor are like: is every one finite, and if not, what is known of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

_UNREADABLE = frozenset({"meta"})
_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128})
Range = tuple[float, float]


@dataclass(frozen=True)
class Stats:
    """Of `count` values: smallest and largest finite one (NaN where there is none), and how many are odd."""

    dtype: str
    shape: tuple[int, ...]
    least: float
    most: float
    count: int
    zeros: int | None = None
    nans: int = 0
    positive_inf: int = 0
    negative_inf: int = 0

    @property
    def infs(self) -> int:
        """How many values are infinite, of either sign."""
        return self.positive_inf + self.negative_inf

    @property
    def finite(self) -> bool:
        """Whether every value is."""
        return not self.nans and not self.infs

    @property
    def kind(self) -> str:
        """What the odd ones are: "nan", "inf", "-inf", several of them joined, "" where all are finite."""
        kinds = (("nan", self.nans), ("inf", self.positive_inf), ("-inf", self.negative_inf))
        return " and ".join(name for name, n in kinds if n)

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        span = "no finite value" if math.isnan(self.least) else f"{self.least:.6g} to {self.most:.6g}"
        counts = (("zero", self.zeros), ("nan", self.nans), ("inf", self.infs))
        odd = [f"{n} of {self.count} {name}" for name, n in counts if n]
        return f"{self.dtype} {size}, {', '.join([span, *odd])}"


def readable(value: Any) -> torch.Tensor | None:
    """The dense floating-point values behind a tensor that can be read here; None for all others.

    A DTensor stands for its local part, a sparse tensor for its values; meta and fake tensors have no values.
    """
    if not isinstance(value, torch.Tensor):
        return None
    inner: Any = getattr(value, "_local_tensor", value)
    if inner.device.type in _UNREADABLE or type(inner).__name__ in ("FakeTensor", "FunctionalTensor"):
        return None
    if inner.layout is not torch.strided:
        if inner.layout is not torch.sparse_coo:
            return None
        inner = inner._values()
    if inner.dtype not in _FLOATS or inner.numel() == 0:
        return None
    tensor: torch.Tensor = inner.detach()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def span(tensor: torch.Tensor) -> Range:
    """Smallest and largest value; both NaN where any value is. One pass, and a wait for the device."""
    least, most = torch.aminmax(tensor)
    return float(least), float(most)


def all_finite(values: Range) -> bool:
    """Whether a span says that every value is finite."""
    return math.isfinite(values[0]) and math.isfinite(values[1])


def measure(tensor: torch.Tensor) -> Stats:
    """Everything about the values of a readable tensor; several passes."""
    nans = torch.isnan(tensor)
    infinite = torch.isinf(tensor)
    good = tensor[~(nans | infinite)]
    least, most = span(good) if good.numel() else (math.nan, math.nan)
    return Stats(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), least, most, tensor.numel(),
                 int((tensor == 0).sum()), int(nans.sum()), int((infinite & (tensor > 0)).sum()),
                 int((infinite & (tensor < 0)).sum()))


def of_span(tensor: torch.Tensor, values: Range) -> Stats:
    """What is left to say of values that have been overwritten since: their dtype, shape and span."""
    return Stats(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), *values, tensor.numel())
