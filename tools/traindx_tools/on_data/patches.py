"""Features of pictures and signals that do not ask where something is: responses to fixed random filters, pooled.

A straight line through pixels knows what is always in one place. Random filters with pooling tell shapes anywhere
(Saxe et al., On random weights and unsupervised feature learning, ICML 2011).
"""

from __future__ import annotations

import numpy as np

from traindx_tools.on_data.column import Array, Column

FILTERS = 32
SMALL = 12
"""Pixels of the shorter side of a picture, from which on it is looked at so."""
SIDE = 32
"""Pixels of a side to which larger pictures are averaged."""
REACH = 7
SIGNAL = 48
"""Samples of a signal, from which on it is looked at so."""
MOST_SAMPLES = 512
SPAN = 15
BLOCK = 64
"""Rows looked at together."""


def suits(column: Column) -> bool:
    """Whether its rows are pictures or signals."""
    return column.kind == "number" and _axes(column.row_shape) != ()


def patch_features(column: Column, index: Array) -> Array:
    """float32 shape (len(index), features): strength, size and peak of each filter's response in each row."""
    axes = _axes(column.row_shape)
    size, reach = (SIDE, REACH) if len(axes) == 2 else (MOST_SAMPLES, SPAN)
    rng = np.random.default_rng(reach)
    filters = rng.normal(size=(FILTERS, reach ** len(axes))).astype(np.float32)
    filters -= filters.mean(axis=1, keepdims=True)
    filters /= np.linalg.norm(filters, axis=1, keepdims=True)
    blocks = [
        _pooled(_plain(column.values[index[at : at + BLOCK]], axes, size), filters, reach)
        for at in range(0, len(index), BLOCK)
    ]
    return np.concatenate(blocks) if blocks else np.empty((0, 3 * FILTERS), np.float32)


def _axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a row along which it extends: two of a picture, one of a signal, none of anything else."""
    long = tuple(a for a, n in enumerate(shape) if n >= SMALL)
    rest = [n for a, n in enumerate(shape) if a not in long]
    if len(long) == 2 and len(rest) <= 1 and all(n <= 4 for n in rest):
        return long
    return long if len(long) == 1 and len(rest) <= 1 and shape[long[0]] >= SIGNAL else ()


def _plain(rows: Array, axes: tuple[int, ...], size: int) -> Array:
    """float32 shape (rows, ...): the mean of the channels, at most `size` along each axis."""
    rows = np.nan_to_num(np.asarray(rows, np.float32), posinf=0.0, neginf=0.0)
    others = tuple(a + 1 for a in range(rows.ndim - 1) if a not in axes)
    rows = rows.mean(axis=others) if others else rows
    for axis in range(1, rows.ndim):
        step = -(-rows.shape[axis] // size)
        if step > 1:
            kept = rows.shape[axis] // step * step
            rows = np.moveaxis(rows, axis, -1)[..., :kept]
            rows = np.moveaxis(rows.reshape(*rows.shape[:-1], -1, step).mean(axis=-1), -1, axis)
    return rows


def _pooled(rows: Array, filters: Array, reach: int) -> Array:
    axes = tuple(range(1, rows.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(rows, (reach,) * len(axes), axis=axes)
    responses = windows.reshape(len(rows), -1, filters.shape[1]) @ filters.T
    strength = np.sqrt((responses**2).mean(axis=1))
    raised = np.maximum(0.0, responses - 2.0 * np.median(strength)).mean(axis=1)
    return np.concatenate([strength, raised, responses.max(axis=1)], axis=1).astype(np.float32)
