"""What an array holds, in a few words: dtype, shape, range, mean and standard deviation.

Two of these beside each other show what no name does: inputs that are scaled in training and not in evaluation, labels
from 1 on where classes count from 0, a column that is constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_VALUES = 1_000_000
"""Elements up to which an array is read; a larger one is told by dtype and shape alone."""


def kind_of(shape: tuple[int, ...], dtype: Any) -> str:
    """`float32[128, 12]`."""
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"


def values_of(array: NDArray[Any], dtype: Any = None) -> str:
    """`float32[128, 12] -3.2 to 4.1, mean 0.01, sd 1`. `dtype`: its own where the array was converted to be read."""
    told = kind_of(array.shape, dtype if dtype is not None else array.dtype)
    if not array.size or array.size > MOST_VALUES or array.dtype.kind not in "biuf":
        return told
    if array.dtype.kind == "b":
        return f"{told} {array.mean():.3g} true"
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    lost = f", {array.size - finite.size:,} not finite" if finite.size < array.size else ""
    if not finite.size:
        return f"{told}{lost}"
    low, high = finite.min(), finite.max()
    if low == high:
        return f"{told} all {low:.4g}{lost}"
    wide = finite.astype(np.float64)
    moments = f", mean {wide.mean():.3g}, sd {wide.std():.3g}" if array.dtype.kind == "f" else ""
    return f"{told} {low:.4g} to {high:.4g}{moments}{lost}"
