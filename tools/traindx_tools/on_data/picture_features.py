"""What pictures hold wherever it is on them: levels, edges, and how many spots darker or brighter than around them.

A linear model of pixels knows places and no numbers: how many lesions, cells or grains there are at random places it
cannot tell. Counts of local extremes at a few smoothings, by how far they stand out, it can be told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.listings import Listing
from traindx_tools.on_data.shard import Shard

SMOOTH = (0, 1, 2, 4)
"""How often a picture is smoothed."""
OUT = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Of the spread of a picture, by which spots stand out."""
LARGEST = 4
"""Spots of each kind whose size is kept."""
CELLS = 8
LEVELS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
SIDE = 12
"""Pixels of a side, at least."""
BLOCK = 512
"""Pictures at once."""
SHOWN = 0.8
"""Share of a table's rows whose pictures were decoded, at least."""


def described(pictures: Array) -> Array:
    """float32 shape (pictures, features) of (pictures, height, width) or (pictures, height, width, colours)."""
    return np.concatenate([_described(pictures[i:i + BLOCK]) for i in range(0, len(pictures), BLOCK)])


def _described(pictures: Array) -> Array:
    colours = pictures.astype(np.float32).reshape(*pictures.shape[:3], -1)
    grey = colours.mean(axis=3)
    parts = [_cells(grey), *(_levels(colours[..., k]) for k in range(colours.shape[3]))]
    for times in range(max(SMOOTH) + 1):
        if times in SMOOTH:
            parts += list(_spots(grey))
        grey = _smoothed(grey)
    return np.concatenate(parts, axis=1, dtype=np.float32)


def _cells(grey: Array) -> Array:
    means = grey
    for axis in (1, 2):
        edges = np.linspace(0, means.shape[axis], CELLS + 1).astype(np.int64)
        counts = np.diff(edges).reshape((-1, 1) if axis == 1 else (-1,))
        means = np.add.reduceat(means, edges[:-1], axis=axis) / counts
    return means.reshape(len(grey), -1)


def _levels(one: Array) -> Array:
    edges = np.abs(np.diff(one, axis=2)).reshape(len(one), -1)
    return np.concatenate([np.quantile(x, LEVELS, axis=1).T for x in (one.reshape(len(one), -1), edges)], axis=1)


def _smoothed(grey: Array) -> Array:
    for axis in (1, 2):
        grey = (np.roll(grey, 1, axis) + 2 * grey + np.roll(grey, -1, axis)) / 4
    return grey


def _spots(grey: Array) -> Iterator[Array]:
    """Counts of spots by how far they stand out of their surroundings, and the largest ones; dark, then bright."""
    height, width = grey.shape[1:]
    core = grey[:, 1:-1, 1:-1]
    around = np.stack([grey[:, 1 + a:height - 1 + a, 1 + b:width - 1 + b]
                       for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b])
    spread = grey.reshape(len(grey), -1).std(axis=1)[:, None] + 1e-6
    for extreme, out in ((core < around.min(axis=0), around.mean(axis=0) - core),
                         (core > around.max(axis=0), core - around.mean(axis=0))):
        far = np.where(extreme, out, 0.0).reshape(len(grey), -1) / spread
        yield np.stack([(far > least).sum(axis=1) for least in OUT], axis=1)
        yield np.sort(far, axis=1)[:, -LARGEST:]


def shown_by(group: Sequence[Shard], sets_shards: Sequence[Shard], listings: Sequence[Listing]
             ) -> Mapping[int, tuple[Array, Array]] | None:
    """By place of each shard: its rows whose decoded pictures it lists, and their features; None where one lists few.
    """
    looks = {os.path.basename(s.row_names[int(r)]): (s, i) for s in sets_shards
             if s.contents is not None and not s.contents.sounds and len(s.row_names) == s.rows
             for i, r in enumerate(s.contents.rows)}
    found: dict[int, tuple[Array, Array]] = {}
    for place, shard in enumerate(group):
        listing = next((one for one in listings if one.shard is shard), None)
        if listing is None or not looks:
            return None
        at = {r: looks[n] for r, a in enumerate(listing.at) if a >= 0
              and (n := os.path.basename(listing.files[int(a)])) in looks}
        if len(at) < SHOWN * shard.rows:
            return None
        found[place] = (np.array(list(at)), described(np.stack([_picture(s, i) for s, i in at.values()])))
    return found


def _picture(shard: Shard, at: int) -> Array:
    assert shard.contents is not None
    colours = shard.contents.colours
    return np.asarray(shard.contents.images[at][:, :, None] if colours is None else colours[at])
