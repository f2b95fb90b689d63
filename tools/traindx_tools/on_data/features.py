"""Simple features of rows: what a small linear model needs to tell classes apart, the same for every kind of field."""

from __future__ import annotations

import warnings
import zlib

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import mixed

WIDTH = 256
"""Features of one field at most."""
HASHED = 128
"""Features of a text or a sequence."""
SIDE = 8
"""Cells along each axis of a picture."""
BENT = 128
"""Random features max(0, w x + b): relations that are no straight lines."""


def raw_features(shard: Shard, fields: tuple[str, ...], index: Array) -> Array:
    """float32 shape (len(index), features): the fields of some rows side by side; NaN becomes 0 after centring."""
    parts = [_of(shard.columns[name], index) for name in fields if name in shard.columns]
    return np.concatenate(parts, axis=1) if parts else np.empty((len(index), 0), np.float32)


def _of(column: Column, index: Array) -> Array:
    if column.kind == "text":
        return (
            _hashed_texts([column.texts[i] for i in index]) if column.texts else np.empty((len(index), 0), np.float32)
        )
    if column.kind == "sequence":
        return _hashed_items(column, index)
    return narrowed(pooled(np.asarray(column.values[index])))


def pooled(rows: Array) -> Array:
    """float32 shape (rows, values): long axes of a row averaged to `SIDE` cells, as a thumbnail is made."""
    rows = rows.astype(np.float32)
    for axis in range(1, rows.ndim):
        if (rows.ndim > 2 and rows.shape[axis] > 2 * SIDE) or (rows.ndim == 2 and rows.shape[1] > 16 * WIDTH):
            cells = SIDE if rows.ndim > 2 else WIDTH
            edges = np.linspace(0, rows.shape[axis], cells + 1).astype(np.int64)
            sums = np.add.reduceat(rows, edges[:-1], axis=axis)
            shape = [1] * rows.ndim
            shape[axis] = cells
            rows = sums / np.diff(edges).reshape(shape)
    return rows.reshape(len(rows), -1)


def narrowed(rows: Array, width: int = WIDTH) -> Array:
    """At most `width` features by a fixed random projection."""
    if rows.shape[1] <= width:
        return rows
    way = np.random.default_rng(rows.shape[1]).normal(size=(rows.shape[1], width)).astype(np.float32)
    return np.asarray(rows @ (way / np.sqrt(rows.shape[1])), np.float32)


def _hashed_texts(texts: list[str]) -> Array:
    out = np.zeros((len(texts), HASHED), np.float32)
    known = _Marks()  # words recur: each is hashed once
    for row, text in enumerate(texts):
        marks = [known[w] for w in text.lower().encode("utf-8", "replace").split()]
        if marks:
            out[row] = np.sqrt(np.bincount(marks, minlength=HASHED))
    return out


class _Marks(dict[bytes, int]):
    """The feature of each word."""

    def __missing__(self, word: bytes) -> int:
        made = self[word] = zlib.crc32(word) % HASHED
        return made


def _hashed_items(column: Column, index: Array) -> Array:
    out = np.zeros((len(index), HASHED), np.float32)
    assert column.offsets is not None
    for row, i in enumerate(index):
        items = column.values[column.offsets[i] : column.offsets[i + 1]][:2000]
        if len(items):
            marks = mixed(items.astype(np.int64).view(np.uint64)) % np.uint64(HASHED)
            out[row] = np.sqrt(np.bincount(marks.astype(np.int64), minlength=HASHED))
    return out


def prepared(parts: list[Array]) -> list[Array]:
    """The features of all shards on one scale, clipped at 5 standard deviations, with bent ones and a constant.

    The scale is that of most shards. A shard of quite another scale is brought to it by its own: what is asked here is
    how its labels relate to its inputs, and the scale is told elsewhere (D104).
    """
    moments = [_centre_and_spread(p) for p in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a feature that is NaN throughout
        centre, spread = (np.nanmedian(np.stack([m[k] for m in moments]), axis=0) for k in (0, 1))
    kept = np.isfinite(centre) & np.isfinite(spread) & (spread > 1e-12 * np.maximum(1.0, np.abs(centre)))
    width = int(kept.sum())
    rng = np.random.default_rng(0)
    way = rng.normal(size=(width, BENT)).astype(np.float32) / np.sqrt(max(1, width))
    bias = rng.normal(size=BENT).astype(np.float32) * 0.5
    out = []
    for part, (mine, own) in zip(parts, moments, strict=True):
        c, s = (mine, own) if _apart(own[kept], spread[kept]) else (centre, spread)
        x = (part[:, kept] - c[kept]) / np.maximum(s[kept], 1e-30)
        x = np.clip(np.nan_to_num(x, nan=0.0, posinf=5.0, neginf=-5.0), -5.0, 5.0).astype(np.float32)
        out.append(
            np.concatenate([x, np.maximum(0.0, 2.0 * (x @ way) + bias), np.ones((len(x), 1), np.float32)], axis=1)
        )
    return out


def _centre_and_spread(part: Array) -> tuple[Array, Array]:
    """float64 shape (features,) each: median, and standard deviation of all but the outer hundredths of the values."""
    some = np.where(np.isfinite(part), part, np.nan)[:: max(1, len(part) // 1000)].astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        low, centre, high = _percentiles(some, (1.0, 50.0, 99.0))
        inner = np.nanstd(np.clip(some, low, high), axis=0)
        return centre, np.where(inner > 0.0, inner, np.nanstd(some, axis=0))


def _percentiles(values: Array, at: tuple[float, ...]) -> Array:
    """float64 shape (len(at), features): as `np.nanpercentile`, which asks one column after another."""
    whole = ~np.isnan(values).any(axis=0) if len(values) else np.zeros(values.shape[1], bool)
    out = np.empty((len(at), values.shape[1]))
    if whole.any():
        out[:, whole] = np.percentile(values[:, whole], at, axis=0)
    if not whole.all():
        out[:, ~whole] = np.nanpercentile(values[:, ~whole], at, axis=0)
    return out


def _apart(own: Array, spread: Array) -> bool:
    """Whether most features have another scale: by more than a factor of three."""
    ratio = np.maximum(own, 1e-30) / spread
    return bool(len(ratio)) and float(np.median(np.abs(np.log(ratio)))) > np.log(3.0)
