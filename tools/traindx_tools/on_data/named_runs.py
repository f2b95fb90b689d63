"""Pictures or sounds by the run that their names tell, with a label each: of class folders, or of a table beside them.

`run04_0012.png` and `sess2/left/0012.wav` say where a file is from: a word with a number that many files share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.features import prepared
from traindx_tools.on_data.listings import Listing, together
from traindx_tools.on_data.roles import is_label, keys, label_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View

ROWS = 24
"""Files of a run."""
RUNS, MOST_RUNS = 4, 60
COVERED = 0.8
KINDS = 12
POOLED = 2
_BETWEEN = re.compile(r"[_\-. ]+")


@dataclass(frozen=True, eq=False)
class Looked:
    """The files that were decoded: their pictures, names, and labels as places among `kinds`, which are called so."""

    shard: Shard
    images: Array
    """float32 shape (files, height, width)."""
    names: tuple[str, ...]
    label: str
    y: Array
    kinds: tuple[str, ...]
    source: str
    """The file that says the labels."""

    def features(self, mirrored: bool = False) -> Array:
        """float32 shape (files, features): pooled pixels, perhaps of the mirrored picture."""
        images = self.images[:, :, ::-1] if mirrored else self.images
        files, height, width = images.shape
        cut = images[:, : height // POOLED * POOLED, : width // POOLED * POOLED]
        pooled = cut.reshape(files, height // POOLED, POOLED, width // POOLED, POOLED).mean(axis=(2, 4))
        return np.asarray(pooled.reshape(files, -1), np.float32)

    def prepared(self) -> tuple[Array, Array]:
        """The features, and those of the mirrored pictures, on one scale."""
        both = prepared([np.concatenate([self.features(), self.features(mirrored=True)])])[0]
        return both[: len(self.y)], both[len(self.y):]


def looked_at(data: DataSet, view: View) -> Iterator[Looked]:
    """The decoded files of each shard with each label that they have, where they may be of several runs."""
    return (one for one in looked_of(data, view.listings) if len(one.y) >= RUNS * ROWS)


def looked_of(data: DataSet, listings: Sequence[Listing]) -> Iterator[Looked]:
    """The decoded files of each shard with each label that they have."""
    for shard in data.shards:
        contents = shard.contents
        if contents is None or len(shard.row_names) != shard.rows or len(contents.rows) < ROWS:
            continue
        names = tuple(shard.row_names[int(r)] for r in contents.rows)
        images = np.asarray(contents.images, np.float32)
        column = shard.columns.get("label")
        if column is not None:
            folders = [PurePath(n).parent.name for n in names]
            kinds = sorted(set(folders))
            if 2 <= len(kinds) <= KINDS:
                y = np.array([kinds.index(f) for f in folders])
                yield Looked(shard, images, names, "label", y, tuple(kinds), shard.name)
        for listing in (*listings, *together(listings)):
            yield from _listed(shard, images, names, listing)


def _listed(shard: Shard, images: Array, names: Sequence[str], listing: Listing) -> Iterator[Looked]:
    """With the labels of a table that names the files."""
    depth = min(len(PurePath(n).parts) for n in names)
    depth = 1 if len({PurePath(n).name for n in names}) == len(names) else depth
    row_of = {PurePath(listing.files[int(a)]).parts[-depth:]: i for i, a in enumerate(listing.at) if a >= 0}
    ends = [PurePath(n).parts[-depth:] for n in names]
    at = np.array([row_of.get(e, -1) for e in ends])
    if len(set(ends)) < len(names) or (at >= 0).mean() < COVERED:
        return
    kept = np.flatnonzero(at >= 0)
    for name, column in listing.shard.columns.items():
        if name == listing.field or column.rows != listing.shard.rows or not is_label(column):
            continue
        values = keys(column)[at[kept]]
        kinds = np.unique(values)
        if 2 <= len(kinds) <= KINDS:
            said = tuple(label_name([listing.shard], name, k) for k in kinds)
            y = np.searchsorted(kinds, values)
            yield Looked(shard, images[kept], tuple(names[int(i)] for i in kept), name, y, said, column.file)


def runs_of(looked: Looked) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Ways to cut the files into runs: which word of the name, and the places of the files by run."""
    words = [_words(n) for n in looked.names]
    most = max(map(len, words))
    seen: set[tuple[int, ...]] = set()
    for place in range(most):
        said = np.array([w[place] if place < len(w) else "" for w in words])
        kinds, at, counts = np.unique(said, return_inverse=True, return_counts=True)
        large = [k for k in range(len(kinds)) if counts[k] >= ROWS and any(c.isdigit() for c in kinds[k])]
        if not RUNS <= len(large) <= MOST_RUNS or counts[large].sum() < COVERED * len(said):
            continue
        if tuple(at.tolist()) not in seen:
            seen.add(tuple(at.tolist()))
            yield f"word {place + 1} of the names", {str(kinds[k]): np.flatnonzero(at == k) for k in large}


def _words(name: str) -> list[str]:
    """The folders but the last one, then the parts of the file's name."""
    path = PurePath(name)
    return [*path.parts[:-2], *_BETWEEN.split(path.stem)]
