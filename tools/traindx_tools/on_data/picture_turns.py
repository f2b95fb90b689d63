"""Pictures that come nearer to all others when they are turned, inverted, or their colours exchanged: row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import THUMBNAIL, Array
from traindx_tools.on_data.shard import Shard

CELLS = 8
"""Cells along a side in which pictures are compared."""
FEWEST = 60
BLOCKS = (8, 24, 80)
"""Pictures that follow each other."""
COPIED = 0.05
"""Of the distance of two pictures, at which one is a copy of the other."""
SCATTER = 1.6
"""Of the means of blocks, in what pictures in no order have: 1 but for the few directions in which pictures vary."""
MOST_ROWS = 20_000
Way = Callable[[Array], Array]
INVERTED = "their values inverted (255 - x)"
WAYS: tuple[tuple[str, Way], ...] = (
    ("the order of their colours reversed (BGR and RGB)", lambda x: x[..., ::-1]),
    (INVERTED, lambda x: -x),
    ("turned upside down", lambda x: x[:, ::-1]),
    ("mirrored", lambda x: x[:, :, ::-1]),
    ("turned by 180 degrees", lambda x: x[:, ::-1, ::-1]),
    ("height and width exchanged", lambda x: x.transpose(0, 2, 1, 3)),
    ("turned by 90 degrees", lambda x: np.rot90(x, 1, (1, 2))),
    ("turned by 270 degrees", lambda x: np.rot90(x, 3, (1, 2))),
)


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of a field, one shard behind the other."""

    field: str
    cells: Array
    """float32 shape (rows, 8, 8, channels), about 0."""
    ends: float
    """The smallest and the largest value of a pixel, added, about the same 0: inverted is that less a value."""
    shards: Array
    """int64 shape (rows,): of which shard each is."""
    rows: Array
    """int64 shape (rows,): which row of it."""


def pictures_of(group: Sequence[Shard]) -> Iterator[Pictures]:
    """The fields of a group that hold pictures in all shards: arrays, thumbnails, files of their own."""
    names = [n for n, c in group[0].columns.items() if c.kind == "number" and _axes(c.row_shape) is not None]
    for name in names:
        if all(name in s.columns and s.columns[name].row_shape == group[0].columns[name].row_shape for s in group):
            step = max(1, sum(s.rows for s in group) // MOST_ROWS)
            rows = [np.arange(0, s.rows, step) for s in group]
            values = [np.asarray(s.columns[name].values[r]) for s, r in zip(group, rows, strict=True)]
            yield _made(name.removesuffix(THUMBNAIL), values, rows)
    shown = [s.contents for s in group]
    if all(c is not None and c.colours is not None for c in shown):
        some = [c for c in shown if c is not None and c.colours is not None]
        yield _made("the pictures", [c.colours for c in some if c.colours is not None], [c.rows for c in some])


def _made(field: str, values: Sequence[Array], rows: Sequence[Array]) -> Pictures:
    shards = np.concatenate([np.full(len(r), i) for i, r in enumerate(rows)])
    every = np.concatenate([_cells(v) for v in values])
    middle = float(np.median(every))
    bytes_ = all(v.dtype == np.uint8 and int(v.max(initial=0)) > 1 for v in values)
    ends = 255.0 if bytes_ else float(sum(np.nanmin(v) for v in values) + sum(np.nanmax(v) for v in values)) / len(rows)
    return Pictures(field, every - middle, ends - 2.0 * middle, shards, np.concatenate(rows))


def _axes(shape: tuple[int, ...]) -> tuple[int, int] | None:
    long = [a for a, n in enumerate(shape) if n >= CELLS]
    channels = [n for a, n in enumerate(shape) if a not in long]
    return (long[0], long[1]) if len(long) == 2 and len(channels) <= 1 and all(n <= 4 for n in channels) else None


def _cells(values: Array) -> Array:
    """Means of 8 x 8 cells, channels last."""
    axes = _axes(values.shape[1:])
    assert axes is not None
    x = np.nan_to_num(np.moveaxis(values.astype(np.float32), [a + 1 for a in axes], [1, 2]))
    x = x.reshape(*x.shape[:3], -1)
    for axis in (1, 2):
        edges = np.round(np.linspace(0, x.shape[axis], CELLS + 1)).astype(np.int64)  # the same from both ends
        shape = [1, 1, 1, 1]
        shape[axis] = CELLS
        x = np.asarray(np.add.reduceat(x, edges[:-1], axis=axis) / np.diff(edges).reshape(shape), np.float32)
    return np.asarray(x, np.float32)


def distances(pictures: Pictures) -> Iterator[tuple[str, Array, Array, Array]]:
    """For each way, how far each picture is from the mean of all as it is and changed, and the changed ones."""
    x = pictures.cells
    if len(x) < FEWEST:
        return
    centre = np.median(x, axis=0)
    spread = np.median(np.abs(x - centre), axis=0) + 1e-3 * float(np.abs(x).mean()) + 1e-9
    before = _far(x, centre, spread)
    for told, way in WAYS:
        if x.shape[3] == 1 and "colours" in told:
            continue
        changed = pictures.ends - x if told == INVERTED else way(x)
        if changed.shape == x.shape:
            yield told, before, _far(changed, centre, spread), changed


def are_copies(changed: Array, others: Array) -> bool:
    """Whether most of some changed pictures are there as they were: augmentation that was stored."""
    some = changed.reshape(len(changed), -1)[:: max(1, len(changed) // 100)]
    known = others.reshape(len(others), -1)
    usual = float(np.abs(known - np.roll(known, 1, axis=0)).mean())
    near = [float(np.abs(known - picture).mean(axis=1).min()) for picture in some]
    return float(np.median(near)) < COPIED * usual


def come_in_blocks(cells: Array) -> bool:
    """Whether neighbouring pictures are more alike than any two: means of blocks scatter more than chance makes."""
    x = cells.reshape(len(cells), -1).astype(np.float64)
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9)
    for block in BLOCKS:
        count = len(x) // block
        if count >= 3:
            means = x[: count * block].reshape(count, block, -1).mean(axis=1)
            if float((means**2).mean() * block) > SCATTER:
                return True
    return False


def _far(x: Array, centre: Array, spread: Array) -> Array:
    """The mean distance in spreads, of which no cell counts more than 4."""
    return np.asarray(np.minimum(np.abs((x - centre) / spread), 4.0).mean(axis=(1, 2, 3)))
