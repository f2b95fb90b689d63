"""Points and boxes on pictures: what a picture shows at them, and whether it does so after the picture is turned.

The surroundings of a point (an eye, the middle of a box) are alike on most pictures, whatever they are. Where those of
one part are not, and are once the pictures are mirrored or turned, the pictures were and the points were not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import THUMBNAIL, Array, Column
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View

SIDE = 32
"""Pixels of a side in which pictures are compared."""
REACH = 3
"""Pixels around a point."""
MOST_ROWS = 4000
MOST_POINTS = 8
FEWEST = 60
INSIDE = 0.95
"""Share of the points that lie on their picture."""
_AXIS = re.compile(r"(^|[^A-Za-z]|(?<=[a-z]))([xX])(?=$|[^A-Za-z]|\d|min|max|center|centre)")

TURNS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("mirrored", lambda x: x[:, :, ::-1]), ("turned upside down", lambda x: x[:, ::-1]),
    ("turned by 180 degrees", lambda x: x[:, ::-1, ::-1]), ("height and width exchanged", lambda x: x.swapaxes(1, 2)),
    ("turned by 90 degrees", lambda x: np.rot90(x, 3, (1, 2))),
    ("turned by 270 degrees", lambda x: np.rot90(x, 1, (1, 2))),
)
"""What was done to pictures, and what undoes it."""


@dataclass(frozen=True, eq=False)
class Marked:
    """Pictures with points. `table`: the shard that holds the points; `row`: of it, by picture."""

    table: Shard
    index: int
    """Of the table among the shards of its set."""
    fields: tuple[str, ...]
    pictures: Array
    """float32 shape (pictures, 32, 32), each about 0 with spread 1."""
    points: Array
    """float32 shape (pictures, points, 2): x and y from 0 to 1."""
    row: Array


def marked_arrays(group: Sequence[Shard]) -> Iterator[Marked]:
    """Pictures and points in arrays of the same rows."""
    for index, shard in enumerate(group):
        pictures = [(n, c) for n, c in shard.columns.items() if _is_picture(c) and c.rows == shard.rows]
        for name, column in pictures[:1]:
            some = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, MOST_ROWS)).astype(np.int64))
            height, width = _axes(column.row_shape)
            size = np.tile([column.row_shape[width], column.row_shape[height]], (len(some), 1)).astype(np.float64)
            for fields, points in points_of(shard, some, size):
                yield Marked(shard, index, (name.removesuffix(THUMBNAIL), *fields),
                             _cells(np.asarray(column.values[some]), height, width), points, some)


def marked_files(view: View, group: Sequence[Shard]) -> Iterator[Marked]:
    """Points in a table that names files of pictures."""
    shown = {}
    for shard in (s for d in view.sets for s in d.shards):
        if shard.contents is None or shard.contents.sounds or "width" not in shard.columns:
            continue
        sizes = np.stack([np.asarray(shard.columns[n].values, np.float64) for n in ("width", "height")], axis=1)
        for at, row in enumerate(shard.contents.rows):
            shown[os.path.basename(shard.row_names[row])] = (shard.contents.images[at], sizes[row])
    for listing in view.listings if shown else []:
        index = next((i for i, s in enumerate(group) if s is listing.shard), -1)
        names = [os.path.basename(listing.files[a]) if a >= 0 else "" for a in listing.at] if index >= 0 else []
        some = np.array([i for i, n in enumerate(names) if n in shown][:MOST_ROWS], np.int64)
        if len(some) < FEWEST:
            continue
        images = np.stack([shown[names[i]][0] for i in some])
        size = np.stack([shown[names[i]][1] for i in some])
        for fields, points in points_of(listing.shard, some, size):
            yield Marked(listing.shard, index, fields, _cells(images, 1, 2, rows=True), points, some)


def _axes(shape: tuple[int, ...]) -> tuple[int, int]:
    """Which axes of a row are height and width."""
    long = [a for a, n in enumerate(shape) if n >= 16]
    return long[0], long[1]


def _is_picture(column: Column) -> bool:
    shape = column.row_shape
    return column.kind == "number" and len(shape) in (2, 3) and sum(n >= 16 for n in shape) == 2 and (
        len(shape) == 2 or min(shape) <= 4)


def _cells(x: Array, height: int, width: int, rows: bool = False) -> Array:
    """float32 shape (pictures, 32, 32): grey, each about 0 with spread 1."""
    if not rows:
        x = np.moveaxis(x, (height + 1, width + 1), (1, 2))
    x = x.astype(np.float32)
    x = x.mean(axis=3) if x.ndim == 4 else x
    at = [np.minimum((np.arange(SIDE) + 0.5) / SIDE * n, n - 1).astype(np.int64) for n in x.shape[1:3]]
    if min(x.shape[1:3]) >= 2 * SIDE:  # cells of several pixels are their mean
        for axis in (1, 2):
            edges = np.linspace(0, x.shape[axis], SIDE + 1).astype(np.int64)
            shape = [1, 1, 1]
            shape[axis] = SIDE
            x = np.add.reduceat(x, edges[:-1], axis=axis) / np.diff(edges).reshape(shape)
    else:
        x = x[:, at[0]][:, :, at[1]]
    x = x - x.mean(axis=(1, 2), keepdims=True)
    return np.asarray(x / (x.std(axis=(1, 2), keepdims=True) + 1e-6), np.float32)


def points_of(shard: Shard, some: Array, size: Array) -> Iterator[tuple[tuple[str, ...], Array]]:
    """The fields that may be points, float32 (rows, points, 2) from 0 to 1. `size`: width and height by row."""
    for name, column in shard.columns.items():
        if column.kind != "number" or column.rows != shard.rows or column.values.dtype.kind not in "iuf":
            continue
        flat = int(np.prod(column.row_shape)) if len(column.row_shape) in (1, 2) else 0
        if not 2 <= flat <= 200 or flat % 2 or (len(column.row_shape) == 2 and column.row_shape[1] != 2):
            continue
        values = np.asarray(column.values[some], np.float64).reshape(len(some), -1, 2)
        yield from _on_picture((name,), values, size)
    names = [n for n, c in shard.columns.items() if c.kind == "number" and not c.row_shape]
    pairs = [(n, other) for n in names if (other := _AXIS.sub(_as_y, n)) != n and other in names]
    if pairs:
        values = np.stack([np.stack([np.asarray(shard.columns[n].values[some], np.float64) for n in p], axis=1)
                           for p in pairs], axis=1)
        yield from _on_picture(tuple(n for p in pairs for n in p), values, size)


def _as_y(found: re.Match[str]) -> str:
    return f"{found[1]}{'y' if found[2] == 'x' else 'Y'}"


def _on_picture(fields: tuple[str, ...], values: Array, size: Array) -> Iterator[tuple[tuple[str, ...], Array]]:
    """As they are, or the middle of a box of corners, or of corner and size: each way that lies on the pictures."""
    if not np.isfinite(values).all():
        return
    scaled = values if float(np.abs(values).max()) <= 1.5 else values / size[:, None, :]
    ways = [scaled]
    if values.shape[1] == 2:
        first, second = scaled[:, :1], scaled[:, 1:]
        ways += [(first + second) / 2] if bool((second > first).mean() > 0.98) else [first + second / 2, first]
    for points in ways:
        if float(((points >= 0) & (points <= 1)).mean()) >= INSIDE and bool((points.std(axis=0) > 0.03).any()):
            yield fields, points[:, :MOST_POINTS].astype(np.float32)


def around(pictures: Array, points: Array) -> Array:
    """float32 shape (pictures, points, 49): the surroundings of each point, each about 0 with norm 1."""
    padded = np.pad(pictures, ((0, 0), (REACH, REACH), (REACH, REACH)), mode="edge")
    x, y = (np.clip((points[..., k] * SIDE).astype(np.int64), 0, SIDE - 1) for k in (0, 1))
    step = np.arange(2 * REACH + 1)
    rows = (y[..., None, None] + step[:, None])
    columns = (x[..., None, None] + step[None, :])
    seen = padded[np.arange(len(pictures))[:, None, None, None], rows, columns].reshape(*points.shape[:2], -1)
    return np.asarray(seen, np.float32)


def fit(marked: Marked, pictures: Array) -> Array:
    """float64 shape (pictures,): how near the surroundings of the points are to those of the usual picture."""
    usual = around(marked.pictures, marked.points)
    template = np.median(usual[:: max(1, len(usual) // 1000)], axis=0)
    seen = around(pictures, marked.points)
    apart = ((seen - template[None]) ** 2).mean(axis=2)
    return np.asarray(-apart.mean(axis=1))
