"""Interval arithmetic as the dtype does it: 1 - 1e-10 is 1 in float32, and that is the point.

A bound is given only where it is reached or nearly so: the lower bound of a softmax is 0 because a probability
underflows to exactly 0, that of `exp` is None because its underflow is no usual fault.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from traindx_tools.on_code.values import Tensor

Bounds = tuple[float | None, float | None]

RESOLUTION = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next larger number (IEEE 754; bfloat16 has 7 fraction bits)."""
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
"""The smallest positive number; half of it rounds to 0."""


def rounded(value: float, dtype: str | None) -> float:
    """`value` as the dtype holds it (float32 where the dtype is not known)."""
    if dtype == "float64":
        return float(value)
    if dtype == "float16":
        return _packed(value, "<e")
    if dtype == "bfloat16":
        return _bfloat16(value)
    return _packed(value, "<f")


def _packed(value: float, form: str) -> float:
    """The nearest number of a shorter format, ties to even; infinite beyond its largest."""
    try:
        return float(struct.unpack(form, struct.pack(form, float(value)))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _bfloat16(value: float) -> float:
    (bits,) = struct.unpack("<I", struct.pack("<f", _packed(value, "<f")))
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", kept))[0])


def add(left: Bounds, right: Bounds, dtype: str | None) -> Bounds:
    """Bounds of a sum."""
    low = None if left[0] is None or right[0] is None else rounded(left[0] + right[0], dtype)
    high = None if left[1] is None or right[1] is None else rounded(left[1] + right[1], dtype)
    return low, high


def negate(bounds: Bounds) -> Bounds:
    """Bounds of the negative."""
    low, high = bounds
    return (None if high is None else -high), (None if low is None else -low)


def multiply(left: Bounds, right: Bounds, dtype: str | None) -> Bounds:
    """Bounds of a product; where a bound is missing, only the sign is followed."""
    if None in left or None in right:
        both_positive = left[0] is not None and right[0] is not None and left[0] >= 0 and right[0] >= 0
        return (rounded(float(left[0]) * float(right[0]), dtype), None) if both_positive else (None, None)  # type: ignore[arg-type]
    products = [rounded(a * b, dtype) for a in left for b in right]  # type: ignore[operator]
    return min(products), max(products)


def divide(left: Bounds, right: Bounds, dtype: str | None) -> Bounds:
    """Bounds of a quotient by something positive; the sign of the left side is kept, its size not."""
    low = 0.0 if left[0] is not None and left[0] == 0 else None
    if right[0] is not None and right[0] == right[1] and right[0] != 0:
        return multiply(left, (1 / right[0], 1 / right[0]), dtype)
    return (low, None) if right[0] is not None and right[0] >= 0 else (None, None)


def power(base: Bounds, exponent: float | None, dtype: str | None) -> Bounds:
    """Bounds of a power with a constant exponent."""
    low, high = base
    if exponent is None:
        return None, None
    if exponent % 2 == 0 and exponent > 0 and (low is None or low < 0):
        most = None if low is None or high is None else max(-low, high)
        return 0.0, None if most is None else rounded(_raised(most, exponent), dtype)
    if low is None or low < 0 or exponent < 0:
        return None, None
    return rounded(_raised(low, exponent), dtype), None if high is None else rounded(_raised(high, exponent), dtype)


def _raised(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def clamp(bounds: Bounds, low: float | None, high: float | None, dtype: str | None) -> Bounds:
    """Bounds after a clamp, with the limits as the dtype holds them."""
    new_low, new_high = bounds
    if low is not None:
        low = rounded(low, dtype)
        new_low = low if new_low is None else max(new_low, low)
    if high is not None:
        high = rounded(high, dtype)
        new_high = high if new_high is None else min(new_high, high)
    return new_low, new_high


def of(tensor: Tensor) -> Bounds:
    """The bounds of a tensor."""
    return tensor.low, tensor.high


def bounded(tensor: Tensor, bounds: Bounds) -> Tensor:
    """The tensor with these bounds."""
    return replace(tensor, low=bounds[0], high=bounds[1])
