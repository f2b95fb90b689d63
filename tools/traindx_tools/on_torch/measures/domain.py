"""Which domain the values of a loss's argument lie in, from a few numbers that are computed on their own device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

MOST_VALUES = 2**20
OTHERS = 32
"""Places along each other axis at which a sum over one axis is checked: a fault of form shows in every row."""
MOST_AXES = 4
SCALARS = ("low", "high", "zeros", "ones", "minus_ones", "fractions", "values")
"""Lowest, highest, and how many values are 0, 1, -1 and no whole numbers, of how many."""
TOLERANCE = {"float64": 1e-3, "float32": 2e-3, "float16": 2e-2, "bfloat16": 6e-2}
"""How far a sum over classes may be from 1: the resolution of the dtype, some times over."""
_VIEWS = ("View", "Unsqueeze", "Squeeze", "Transpose", "Permute", "T", "ToCopy", "Reshape", "UnsafeView", "Alias",
          "Select", "Slice", "Expand", "Clone", "Index")  # fmt: skip


@dataclass(frozen=True)
class Numbers:
    """One argument in one call. `sums` and `logs` by axis: the largest distance of a sum of the values, and of their
    logsumexp, from 1 and from 0, over rows that are not all zero."""

    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float
    zeros: float
    ones: float
    minus_ones: float
    fractions: float
    values: float
    sums: tuple[float, ...] = ()
    logs: tuple[float, ...] = ()
    highest_log: tuple[float, ...] = ()
    """By axis: the largest logsumexp."""
    largest_sum: tuple[float, ...] = ()
    made_by: str = ""
    """The operation that made it, as autograd names it, without views and casts; "" where none is known."""
    gradient: bool = False

    @property
    def tolerance(self) -> float:
        """Of a sum."""
        return TOLERANCE.get(self.dtype, 2e-3)

    def sums_to_one(self, axis: int | None) -> bool:
        """Whether the values are a distribution over this axis (None: over any axis of at least two places)."""
        return self.low >= -1e-6 and any(self.sums[a] <= self.tolerance for a in self._axes(axis))

    def logs_sum_to_one(self, axis: int | None) -> bool:
        """Whether the exponentials of the values are one."""
        return self.high <= self.tolerance and any(self.logs[a] <= 5 * self.tolerance for a in self._axes(axis))

    def below_one(self, axis: int | None) -> bool:
        """Whether the exponentials sum to 1 or less: a part of a distribution is one whose loss is bounded."""
        return self.high <= self.tolerance and any(
            self.highest_log[a] <= 5 * self.tolerance for a in self._axes(axis))

    def _axes(self, axis: int | None) -> list[int]:
        count = len(self.sums)
        if axis is not None:
            wanted = [axis % len(self.shape) if self.shape else 0]
            if axis == 1 and len(self.shape) == 1:
                wanted = [0]
        else:
            wanted = list(range(count))
        return [a for a in wanted if a < count and self.shape[a] > 1]


@dataclass
class Measured:
    """Numbers on their device, as one vector, and what is known without reading it."""

    vector: torch.Tensor
    axes: int
    dtype: str
    shape: tuple[int, ...]
    made_by: str = ""
    gradient: bool = False

    def read(self, vector: Any) -> Numbers:
        """The numbers, from the vector as it arrived on the host."""
        head = [float(v) for v in vector[:len(SCALARS)]]
        rest = [float(v) for v in vector[len(SCALARS):]]
        n = self.axes
        low, high, zeros, ones, minus_ones, fractions, values = head
        return Numbers(self.dtype, self.shape, low, high, zeros, ones, minus_ones, fractions, values,
                       sums=tuple(rest[:n]), logs=tuple(rest[n:2 * n]), highest_log=tuple(rest[2 * n:3 * n]),
                       largest_sum=tuple(rest[3 * n:]), made_by=self.made_by, gradient=self.gradient)


def measurable(value: Any) -> bool:
    """A plain tensor with values: no subclass, none of a transform (vmap, grad), of another layout or of no device."""
    return (type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided
            and value.numel() > 0 and not value.is_complex() and value.device.type != "meta"
            and not torch._C._functorch.is_functorch_wrapped_tensor(value))


def measure(tensor: torch.Tensor) -> Measured:
    """The numbers of a tensor; large ones by their first rows. Nothing is read: the vector stays on its device."""
    kind = str(tensor.dtype).removeprefix("torch.")
    made = made_by(tensor)
    gradient = tensor.requires_grad
    with torch.no_grad():
        t = tensor.detach()
        part = t[:max(1, MOST_VALUES * t.shape[0] // t.numel())] if t.ndim and t.numel() > MOST_VALUES else t
        x = part.float()
        scalars = [x.amin(), x.amax(), (x == 0).sum(), (x == 1).sum(), (x == -1).sum(), (x != x.round()).sum(),
                   torch.full((), float(x.numel()), device=x.device)]
        axes = min(t.ndim, MOST_AXES) if t.is_floating_point() else 0
        sums, logs, highest, largest = [], [], [], []
        for axis in range(axes):
            rows = _some(t, axis).double() if t.device.type == "cpu" else _some(t, axis).float()
            total, log = rows.sum(axis), rows.logsumexp(axis)
            empty = total.eq(0) & rows.abs().amax(axis).eq(0)
            sums.append(torch.where(empty, 0, (total - 1).abs()).amax())
            logs.append(log.abs().amax())
            highest.append(log.amax())
            largest.append(total.amax())
        vector = torch.stack([v.float() for v in (*scalars, *sums, *logs, *highest, *largest)])
    return Measured(vector, axes, kind, tuple(t.shape), made, gradient)


def _some(t: torch.Tensor, axis: int) -> torch.Tensor:
    """All places of one axis, the first ones of the others."""
    most = OTHERS if t.ndim < 3 else 8
    index = tuple(slice(None) if a == axis else slice(0, most) for a in range(t.ndim))
    return t[index]


def made_by(tensor: torch.Tensor) -> str:
    """The operation behind a tensor, such as "Sigmoid", once views and casts are off."""
    node: Any = tensor.grad_fn
    for _ in range(16):
        if node is None:
            return ""
        name = type(node).__name__.partition("Backward")[0]
        if name not in _VIEWS:
            return name
        node = node.next_functions[0][0] if node.next_functions else None
    return ""
