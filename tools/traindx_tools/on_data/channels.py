"""What tells the channels of signals and pictures apart beyond their level and scale, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.roles import is_identifier, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

MOST_CHANNELS = 32
SAMPLES = 32
"""Values of a channel in a row, at least."""
MOST_SAMPLES = 1024
MOST_ROWS = 200
WINDOW = 128
"""Rows of a table that are taken as one stretch of a recording."""
FEWEST = 12
"""Rows of a shard."""
LAGS = (1, 2, 4, 8)
BANDS = 6


@dataclass(frozen=True, eq=False)
class Channels:
    """Of some rows of a shard: float64 shape (rows, channels, features), with the names of the channels."""

    shard: Shard
    field: str
    names: tuple[str, ...]
    features: Array


def channels_of(data: DataSet, shard: Shard) -> list[Channels]:
    """The fields of a shard that have channels, and its single numbers together where they are a recording."""
    found = []
    for name, column in shard.columns.items():
        numbers = column.kind == "number" and column.values.dtype.kind in "iuf"
        axis = channel_axis(column.row_shape) if numbers else None
        if axis is None or shard.rows < FEWEST:
            continue
        some = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, MOST_ROWS)).astype(np.int64))
        rows = np.moveaxis(np.asarray(column.values[some], np.float64), axis + 1, 1)
        names = tuple(f"channel {k} of {name}" for k in range(rows.shape[1]))
        found.append(Channels(shard, name, names, described(_thinned(rows))))
    single = tuple(n for n in shard.columns if _is_measure(data, shard, n))
    if 2 <= len(single) <= MOST_CHANNELS and shard.rows >= FEWEST * WINDOW and shard.numbers is None:
        rows = np.stack([np.asarray(shard.columns[n].values, np.float64) for n in single], axis=1)
        whole = rows[: len(rows) // WINDOW * WINDOW].reshape(-1, WINDOW, len(single))
        some = np.unique(np.linspace(0, len(whole) - 1, min(len(whole), MOST_ROWS)).astype(np.int64))
        found.append(Channels(shard, "", single, described(np.moveaxis(whole[some], 2, 1))))
    return found


def _is_measure(data: DataSet, shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return column.is_float and not column.row_shape and name not in data.labels and not is_time(name) and (
        not is_identifier(column)
    )


def channel_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of the channels: the short one beside one long axis, or beside the two of a picture."""
    if len(shape) not in (2, 3):
        return None
    axis = int(np.argmin(shape))
    rest = [n for a, n in enumerate(shape) if a != axis]
    most = 4 if len(shape) == 3 else MOST_CHANNELS
    fits = 2 <= shape[axis] <= most and min(rest) >= 8 and int(np.prod(rest)) >= SAMPLES
    return axis if fits and all(shape[axis] < n for n in rest) else None


def _thinned(rows: Array) -> Array:
    """float64 shape (rows, channels, samples): of a picture its rows of pixels one after another, from its middle."""
    flat = rows.reshape(*rows.shape[:2], -1)
    start = max(0, (flat.shape[2] - MOST_SAMPLES) // 2)
    return flat[:, :, start : start + MOST_SAMPLES]


def described(rows: Array) -> Array:
    """float64 shape (rows, channels, features) of (rows, channels, samples): level, scale, form, time, the others."""
    finite = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    low, quarter, centre, three, high = np.quantile(finite, (0.02, 0.25, 0.5, 0.75, 0.98), axis=2)
    scale = finite.std(axis=2) + 1e-30
    moved = finite - finite.mean(axis=2, keepdims=True)
    unit = moved / scale[..., None]
    form = [centre, np.log(scale), (high - centre) / scale, (centre - low) / scale, (three - quarter) / scale]
    form += [np.cbrt((unit**3).mean(axis=2)), np.log1p((unit**4).mean(axis=2))]
    time = [(unit[..., lag:] * unit[..., :-lag]).mean(axis=2) for lag in LAGS]
    power = np.abs(np.fft.rfft(unit, axis=2))[..., 1:] ** 2
    edges = np.unique(np.geomspace(1, power.shape[2], BANDS + 1).astype(np.int64)) - 1
    bands = np.add.reduceat(power, edges[:-1], axis=2)
    shares = np.log(bands / power.sum(axis=2, keepdims=True).clip(1e-30) + 1e-4)
    together = np.einsum("ncs,nds->ncd", unit, unit) / unit.shape[2]
    others = np.sort(together, axis=2)[..., :-1]  # in order of size: which channel it is does not count
    kept = others[..., np.unique(np.linspace(0, others.shape[2] - 1, 3).astype(np.int64))]
    return np.concatenate([np.stack([*form, *time], axis=2), shares, kept], axis=2)


def standard(groups: Sequence[Channels]) -> tuple[Array, Array]:
    """Mean feature of each channel over the shards, float64 (channels, features), and the spread of rows within one."""
    means = np.median(np.stack([np.median(g.features, axis=0) for g in groups]), axis=0)
    apart = np.concatenate([g.features - means for g in groups])
    low, high = np.quantile(apart, (0.16, 0.84), axis=0)
    return means, np.maximum((high - low).mean(axis=0) / 2.0, 1e-9)
