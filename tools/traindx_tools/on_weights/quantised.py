"""Matrices of whole numbers with a scale a row or a column: which axis the codes were made along, and their statistics.

A scale is the largest magnitude of its line over the largest code, so that each line of the right axis reaches the end
of the range; of the other axis about two thirds do, by chance. For the same reason the spread of the codes of a line
does not go with its scale: the scale is what was taken out of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.tensor import Tensor

MOST_BYTES = 2**26
"""Bytes of a matrix that is looked at."""
SHORTEST = 16
_SCALES = ("scale", "scb", "absmax")
_OTHERS = ("input", "act", "output", "zero", "min", "max_val")
"""What other numbers beside a layer are called: scales of activations, ranges."""
_FULL, _PART = 0.99, 0.9
"""Share of the lines that reach the end of the range along the axis of the scales, at least, and along the other."""
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quantised:
    """Codes and their scales, one a line of one axis. `said`: 0 rows, 1 columns, None: it may be both.

    Kernels have their outputs as rows, or as columns where these are the last axis.
    """

    tensor: Tensor
    scale_name: str
    scales: Vector
    said: int | None
    zeros: Vector | None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return two_axes(self.tensor.shape, len(self.scales))

    def codes(self) -> NDArray[np.float32]:
        """The codes as numbers; those of uint8 around 128 where no zero points are kept. Raises UnreadableInput."""
        codes = np.asarray(self.tensor.load(MOST_BYTES), np.float32).reshape(self.shape)
        return codes - 128 if self.tensor.dtype == "uint8" and self.zeros is None else codes

    @cached_property
    def _measured(self) -> tuple[int | None, tuple[Vector, Vector]]:
        """In one pass, so that the codes need not be held."""
        codes = self.codes()
        axis = axis_of(codes)
        np.square(codes, out=codes)
        rows, columns = (np.sqrt(codes.mean(axis=1 - a, dtype=np.float64)) for a in (0, 1))
        return axis, (rows, columns)

    @property
    def axis(self) -> int | None:
        """Which lines use the whole range, 0 rows or 1 columns; None where both or neither do."""
        return self._measured[0]

    def spread(self, axis: int) -> Vector:
        """The root mean square of the codes of each row (0) or column (1)."""
        return self._measured[1][axis]

    def goes_with(self, axis: int) -> float:
        """Correlation of the logarithms of scales and spreads along an axis; nan where the lengths differ."""
        spread = self.spread(axis)
        if len(spread) != len(self.scales) or not (spread > 0).all() or not np.ptp(self.scales):
            return math.nan
        return float(np.corrcoef(np.log(self.scales), np.log(spread))[0, 1])

    def restored(self, axis: int) -> NDArray[np.float64] | None:
        """The weights, with scales along an axis; None where their number is another."""
        if self.shape[axis] != len(self.scales):
            return None
        shape = (-1, 1) if axis == 0 else (1, -1)
        codes = self.codes().astype(np.float64)
        return np.asarray((codes if self.zeros is None else codes - self.zeros.reshape(shape))
                          * self.scales.reshape(shape))


def two_axes(shape: tuple[int, ...], lines: int) -> tuple[int, int]:
    """The shape of a matrix as it is, that of a kernel with the axis of so many lines kept."""
    if len(shape) == 2:
        return shape[0], shape[1]
    return (shape[0], math.prod(shape[1:])) if shape[0] == lines else (math.prod(shape[:-1]), shape[-1])


def axis_of(codes: NDArray[np.floating]) -> int | None:
    """Which lines reach an end of the range, 0 rows or 1 columns; None where both or neither do."""
    high, low = float(codes.max()), float(codes.min())
    ends = codes >= high - 1  # -128 or -127, as it was rounded
    if low < 0 or high > 128:
        ends |= codes <= low + 1
    full = [float(ends.any(axis=1 - a).mean()) for a in (0, 1)]
    return next((a for a in (0, 1) if full[a] >= _FULL and full[1 - a] <= _PART), None)


def quantised(tensors: Mapping[str, Tensor]) -> Iterator[Quantised]:
    """Each matrix and kernel of eight-bit codes with one scale a line. Raises UnreadableInput."""
    by_module: dict[str, list[Tensor]] = {}
    for name, tensor in tensors.items():
        by_module.setdefault(name.rpartition(".")[0], []).append(tensor)
    for name, tensor in tensors.items():
        if tensor.dtype not in ("int8", "uint8") or len(tensor.shape) < 2 or tensor.nbytes > MOST_BYTES:
            continue
        beside = [*by_module.get(name.rpartition(".")[0], ()), *by_module.get(name, ())]
        scale = _vector(name, tensor, beside, _SCALES, _OTHERS)
        if scale is None or min(two_axes(tensor.shape, scale.size)) < SHORTEST:
            continue
        values = scale.load().astype(np.float64).reshape(-1)
        if np.isfinite(values).all() and (values > 0).all():
            zeros = _vector(name, tensor, beside, ("zero",), ())
            own = zeros.load().astype(np.float64).reshape(-1) if zeros is not None else None
            yield Quantised(tensor, scale.name, values / 127 if "scb" in scale.name.lower() else values,
                            _said(tensor, scale), own if own is not None and len(own) == len(values) else None)


def _vector(name: str, tensor: Tensor, beside: list[Tensor], called: tuple[str, ...], others: tuple[str, ...]
            ) -> Tensor | None:
    """A tensor beside that has one number a line and is called so; its name shares the most with the matrix's."""
    stem = name.rpartition(".")[2].removeprefix("q").removesuffix("_q")
    found = []
    for one in beside:
        last = one.name.removeprefix(name.rpartition(".")[0]).lower()
        if one is not tensor and any(c in last for c in called) and not any(o in last for o in others) and (
                one.size in (tensor.shape[0], tensor.shape[-1]) and max(one.shape, default=0) == one.size):
            found.append((stem not in last, len(last), one))
    own = [f for f in found if not f[0]] or (found if len({f[2].name for f in found}) == 1 else [])
    return min(own, key=lambda f: f[:2])[2] if own else None


def _said(tensor: Tensor, scale: Tensor) -> int | None:
    """The axis by the shape of the scales, or by their number."""
    if len(tensor.shape) > 2:
        return 0 if tensor.shape[0] == scale.size else 1
    if len(scale.shape) == 2 and scale.size > 1:
        return 0 if scale.shape[0] == scale.size else 1
    return None if tensor.shape[0] == tensor.shape[1] else tensor.shape.index(scale.size)
