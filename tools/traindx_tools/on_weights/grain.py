"""The narrower type that values passed through: the grain that they are left with.

A value of float16 or bfloat16 stays one of few when it is widened again; what was quantised to whole steps stays a
multiple of them. Looked at are the sample of a tensor and a few whole rows (each row has its own step where scales are
a row's).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_code.answers import kept
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import STORED, as_numbers

FEWEST = 64
"""Values that are not zero, and distinct ones of them, below which chance may give them a grain."""
_ROWS, _ROW_VALUES, _SHORTEST = 8, 4096, 16
"""Rows that are looked at, values of each at most, and at least. Sixteen are on steps by chance once in 10^15."""
_MOST_ROWS = 0.75
"""Share of the rows that must be on steps: in a short one no two values may be one step apart."""
_LEVELS = 255
"""Steps of eight bits, from the smallest to the largest value."""
_OFF_STEP = 2e-3
"""How far from a whole number of steps a value may be: widened values are within 2^-16 of it."""
_BELL = 2.2
"""Kurtosis above which values are no grid of places, whose is 1.8; weights have three and more."""
HALF_MOST = 65504.0
"""The largest number of float16 (IEEE 754)."""


@kept
def grain_of(stats: Stats) -> str:
    """"bfloat16", "float16", "float32" (of float64), "steps" (of eight bits and fewer), or "" for none."""
    if stats.tensor.dtype not in ("float32", "float64") or stats.constant or stats.nan or stats.inf:
        return ""
    values = _magnitudes(stats)
    if len(values) < FEWEST or len(np.unique(values)) < 8 or _regular(values):
        return ""
    if _is(values, "bfloat16"):
        return "bfloat16"
    if values.max() <= HALF_MOST and _is(values, "float16"):
        return "float16"
    if stats.tensor.matrix and stats.kurtosis > _BELL and _in_steps(stats):
        return "steps"
    return "float32" if stats.tensor.dtype == "float64" and _is(values, "float32") else ""


def _regular(values: NDArray[np.float64]) -> bool:
    """Whether they are whole numbers or multiples of a coarse power of two, as counts, pixels and places are."""
    return bool((values * 2.0 ** (11 - np.ceil(np.log2(values.max()))) % 1 == 0).all())


def _is(values: NDArray[np.float64], dtype: str) -> bool:
    """Whether all values are such numbers."""
    with np.errstate(all="ignore"):
        narrow = values.astype(np.float32)
        if dtype == "bfloat16":
            return bool((narrow == values).all() and not (narrow.view(np.uint32) & 0xFFFF).any())
        return bool((values.astype(np.dtype(dtype)).astype(np.float64) == values).all())


@kept
def in_steps(stats: Stats) -> bool:
    """Whether the values are whole steps, whatever their distribution."""
    values = _magnitudes(stats)
    return len(values) >= FEWEST and bool(np.isfinite(values).all()) and _in_steps(stats)


def _magnitudes(stats: Stats) -> NDArray[np.float64]:
    return np.asarray(np.abs(stats.stored_sample[stats.stored_sample != 0]).astype(np.float64))


@kept
def _in_steps(stats: Stats) -> bool:
    """Whether the values are whole steps, of the tensor or of each row."""
    values = _magnitudes(stats)
    if len(values) >= 4 * _LEVELS and on_steps(values):
        return True
    tensor = stats.tensor
    width = tensor.size // max(1, tensor.rows)
    if width < _SHORTEST or tensor.rows < _ROWS:
        return False
    off = 0
    for at in range(_ROWS):
        off += not on_steps(_row(stats, tensor.rows * at // _ROWS))
        if off > (1 - _MOST_ROWS) * _ROWS:  # of most tensors the first rows tell it
            return False
    return True


def _row(stats: Stats, index: int) -> NDArray[np.float64]:
    tensor = stats.tensor
    width = tensor.nbytes // tensor.rows
    length = min(width, _ROW_VALUES * tensor.itemsize)
    part = next(iter(tensor.source.parts(index * width, length, length)))
    values = np.abs(as_numbers(part.view(STORED[tensor.dtype]), tensor.dtype).astype(np.float64))
    return np.asarray(values[values > 0])


def on_steps(values: NDArray[np.float64]) -> bool:
    """Whether magnitudes are whole multiples, up to `_LEVELS`, of the least distance between two of them."""
    few = values[:8 * _LEVELS]
    if len(values) < _SHORTEST or (len(few) < len(values) and len(np.unique(few)) > 4 * _LEVELS):
        return False
    levels = np.unique(values)
    if not 4 <= len(levels) <= 4 * _LEVELS:
        return False
    gaps = np.diff(np.concatenate(([0.0], levels)))
    gaps = gaps[gaps > 1e-6 * levels[-1]]  # rounding of a product makes two values of one
    least = float(gaps.min())
    if levels[-1] > 1.5 * (_LEVELS + 1) * least:
        return False
    step = float(np.median(gaps[gaps <= 1.5 * least]))
    counts = np.rint(levels / step)
    if counts[-1] > _LEVELS or not (counts > 0).all():
        return False
    step = float(levels @ counts / (counts @ counts))  # the least gap is a rough measure of it
    return bool((np.abs(levels / step - counts) < _OFF_STEP * np.maximum(1, counts / 16)).all())
