"""What the values of an array are like: is every one finite, and if not, what is known of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

FINITE, INFINITE, NAN = "", "inf", "nan"
"""Kinds of values, by the worst one among them."""


@dataclass(frozen=True)
class Stats:
    """Of `count` values: smallest and largest finite one (NaN where there is none), and how many are odd."""

    dtype: str
    shape: tuple[int, ...]
    least: float
    most: float
    count: int
    zeros: int = 0
    nans: int = 0
    infs: int = 0

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        span = "no finite value" if math.isnan(self.least) else (
            f"{self.least:.6g}" if self.least == self.most else f"{self.least:.6g} to {self.most:.6g}")
        counts = (("zero", self.zeros), ("nan", self.nans), ("inf", self.infs))
        odd = [f"{n} of {self.count} {name}" if self.count > 1 else name for name, n in counts if n]
        return f"{self.dtype} {size}, {', '.join([span, *odd])}" if self.count else f"{self.dtype} {size}, empty"


def is_inexact(value: Any) -> bool:
    """Whether a value can hold something that is not finite; keys and integers cannot."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, (float, complex)) if dtype is None else _is_inexact(dtype)


def _is_inexact(dtype: Any) -> bool:
    if not isinstance(dtype, np.dtype):
        return False
    return dtype.kind in "fc" or (dtype.kind == "V" and dtype.name.startswith(("bfloat", "float")))


def on_host(value: Any) -> np.ndarray[Any, Any]:
    """The values as numpy sees them: no copy on a CPU. float8 and bfloat16 become float32."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array


def kind_of(value: Any) -> str:
    """FINITE, INFINITE (no NaN among them) or NAN."""
    if not is_inexact(value):
        return FINITE
    array = on_host(value)
    with np.errstate(all="ignore"):
        if bool(np.isfinite(array).all()):
            return FINITE
        return NAN if bool(np.isnan(array).any()) else INFINITE


def first_odd(value: Any) -> tuple[int, ...]:
    """Where the first value that is not finite lies."""
    flat = int(np.argmax(~np.isfinite(on_host(value))))
    return tuple(int(i) for i in np.unravel_index(flat, np.shape(value)))


def measure(value: Any) -> Stats:
    """Everything about the values of an array of numbers; integers and truth values too."""
    array = on_host(value)
    dtype = str(getattr(value, "dtype", array.dtype))
    real = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
    good = real[np.isfinite(real)]
    least, most = (float(good.min()), float(good.max())) if good.size else (math.nan, math.nan)
    return Stats(dtype, tuple(array.shape), least, most, int(array.size), int((real == 0).sum()),
                 int(np.isnan(real).sum()), int(np.isinf(real).sum()))


def measurable(value: Any) -> bool:
    """Whether a value is an array of numbers that can be read here."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return isinstance(value, (bool, int, float, complex))
    if not isinstance(dtype, np.dtype) or not getattr(value, "is_fully_addressable", True):
        return False
    return dtype.kind in "biufc" or _is_inexact(dtype)
