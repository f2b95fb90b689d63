"""One field of the rows of a shard, what was damaged, and what files show. Holds no handles and does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Stated = float | str | tuple[str, ...] | tuple[float, ...]
"""A property that a file states of its content."""

THUMBNAIL = ".thumbnail"
"""How a field of decoded pictures is called, behind the name of the field that holds them."""


@dataclass(frozen=True, eq=False)
class Column:
    """One field of the rows that were read of one shard.

    `values` by kind: "number" shape (rows, ...), bool, integer or float; "text" int64 shape (rows,), lengths in
    characters; "sequence" the items of all rows one after another, row i at `offsets[i]:offsets[i + 1]`.
    """

    name: str
    kind: str
    values: Array
    file: str
    """The file that holds it, as the user named it."""
    offsets: Array | None = None
    digests: Array | None = None
    """uint64 shape (rows,): a hash of each text or of each file's bytes."""
    texts: tuple[str, ...] = ()
    """The beginnings of the texts."""
    missing: Array | None = None
    """bool shape (rows,): cells of a table that hold nothing."""
    orientations: Array | None = None
    """int8 shape (rows,): EXIF orientation of each picture, where the field is the width of pictures; 1 is upright."""
    label_images: Mapping[int, Array] = field(default_factory=dict)
    """uint8 shape (height, width) by row, where the field is the width of pictures of one channel: some, as stored."""
    turns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By speaker, the beginnings of what it says in each row, where the field holds conversations."""
    inner: int = 1
    """Items of a sequence that belong together: 4 of a list of boxes."""

    @property
    def rows(self) -> int:
        """How many rows were read."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row; () for scalars, texts and sequences."""
        return self.values.shape[1:] if self.kind == "number" else ()

    @cached_property
    def by_feature(self) -> Array:
        """shape (features, rows): the numbers of a row one behind the other, each feature in one piece of memory.

        A copy, made once: what looks at one feature of all rows would else skip over all the others.
        """
        return np.ascontiguousarray(self.values.reshape(len(self.values), -1).T)

    @property
    def is_integer(self) -> bool:
        """Whether it holds whole numbers or truth values."""
        return self.kind != "text" and self.values.dtype.kind in "iub"

    @property
    def is_float(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self.kind == "number" and self.values.dtype.kind == "f"

    @cached_property
    def lengths(self) -> Array:
        """int64 shape (rows,): items of each sequence, characters of each text."""
        return np.diff(self.offsets) if self.offsets is not None else self.values


def at_rows(column: Column, rows: Array) -> Column:
    """The field of some rows only, in memory. `rows`: int64, which, as places among those that were read."""
    def picked(values: Array | None) -> Array | None:
        return None if values is None else np.asarray(values[rows])

    kept = {"digests": picked(column.digests), "missing": picked(column.missing),
            "orientations": picked(column.orientations),
            "texts": tuple(column.texts[i] for i in rows.tolist()) if column.texts else (),
            "label_images": {new: column.label_images[old] for new, old in enumerate(rows.tolist())
                             if old in column.label_images} if column.label_images else {},
            "turns": {who: tuple(said[i] for i in rows.tolist()) for who, said in column.turns.items()}}
    if column.offsets is None:
        return replace(column, values=np.asarray(column.values[rows]), **kept)  # type: ignore[arg-type]
    lengths = np.diff(column.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(column.offsets[:-1][rows] - offsets[:-1], lengths)
    return replace(column, values=np.asarray(column.values[places]), offsets=offsets, **kept)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Damage:
    """A record or a file that is not whole."""

    what: str
    """A clause: "the archive ends within shard 3"."""
    row: int | None = None
    records: int = 1
    width: int = 0
    """Bytes of a number that the clause takes for granted: told only where something beside the file says so."""


@dataclass(frozen=True, eq=False)
class Contents:
    """Thumbnails of pictures, or spectra of sounds over time: float32 shape (some rows, height, width)."""

    rows: Array
    """int64 shape (some rows,): which rows they are of."""
    images: Array
    sounds: bool = False
    colours: Array | None = None
    """uint8 shape (some rows, 32, 32, 3), of pictures."""
