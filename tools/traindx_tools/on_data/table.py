"""The common view of data files: files or shards x named fields x rows. Holds no handles and does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from traindx_tools.on_data.listings import Listing
    from traindx_tools.on_data.name_list import NameList
    from traindx_tools.on_data.summary import Summary
    from traindx_tools.on_data.tasks import Task

Array = NDArray[Any]

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


@dataclass(frozen=True)
class Damage:
    """A record or a file that is not whole."""

    what: str
    """A clause: "the archive ends within shard 3"."""
    row: int | None = None
    records: int = 1


@dataclass(frozen=True, eq=False)
class Contents:
    """Thumbnails of pictures, or spectra of sounds over time: float32 shape (some rows, height, width)."""

    rows: Array
    """int64 shape (some rows,): which rows they are of."""
    images: Array
    sounds: bool = False
    colours: Array | None = None
    """uint8 shape (some rows, 32, 32, 3), of pictures."""


@dataclass(frozen=True, eq=False)
class Shard:
    """What was read of one file, or of several that hold the fields of the same rows."""

    name: str
    format: str
    columns: Mapping[str, Column]
    rows: int
    total: int
    """Rows that the file holds; more than `rows` where it was sampled."""
    split: str = ""
    """"train", "validation", "test" or "" where its name does not say."""
    numbers: Array | None = None
    """int64 shape (rows,): which rows of the file were read, None where it is all of them."""
    row_names: tuple[str, ...] = ()
    """Names of the rows, where they have some: files, keys."""
    damage: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    contents: Contents | None = None
    """What some of its files show, where its rows are files whose headers were read."""
    odd_lengths: Mapping[str, int] = field(default_factory=dict)
    """Fields that have nearly as many rows as the rest, and how many."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Arrays of quite another length, and how many rows they have: a list of names, or rows cut otherwise."""

    raw: Mapping[str, Array] = field(default_factory=dict)
    """uint8 shape (some rows, bytes): the first bytes of fields that are plain bytes of one length."""

    flat_tops: Array | None = None
    """float64 shape (rows, 2), of sounds: extreme as a share of full scale, how flat it is there; NaN: unread."""

    left_right: Array | None = None
    """float64 shape (rows, 2), of sounds: correlation of both channels, logarithm of the ratio of their spreads."""

    label_images: Mapping[int, Array] = field(default_factory=dict)
    """uint8 shape (height, width) by row, of pictures of one channel: their upper left part, as stored."""

    def row(self, index: int) -> str:
        """A row that was read, as a person finds it in the file (the first is 0)."""
        number = index if self.numbers is None else int(self.numbers[index])
        return f"row {number}" + (f" ({self.row_names[index]})" if self.row_names else "")

    @cached_property
    def summaries(self) -> Mapping[str, Summary]:
        """Statistics of each field."""
        from traindx_tools.on_data.summary import summarised

        return {name: summarised(column) for name, column in self.columns.items()}


@dataclass(frozen=True, eq=False)
class DataSet:
    """Shards that hold the same fields: siblings, and the sets of one split."""

    name: str
    shards: tuple[Shard, ...]

    @cached_property
    def splits(self) -> Mapping[str, tuple[Shard, ...]]:
        """The shards by split, in the order in which they were found."""
        return {s: tuple(x for x in self.shards if x.split == s) for s in dict.fromkeys(x.split for x in self.shards)}

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of all fields."""
        return tuple(dict.fromkeys(name for s in self.shards for name in s.columns))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The fields that are labels."""
        from traindx_tools.on_data.roles import label_fields

        return label_fields(self)

    def siblings(self, name: str) -> tuple[tuple[Shard, ...], ...]:
        """The shards that hold a field, by split."""
        return tuple(tuple(s for s in group if name in s.columns) for group in self.splits.values())

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Its labels beside its inputs."""
        from traindx_tools.on_data.tasks import tasks_of

        return tuple(tasks_of(self))

    @cached_property
    def comparisons(self) -> int:
        """Shards x fields: what every test of this set is divided by."""
        return max(1, sum(len(s.columns) for s in self.shards))


@dataclass(frozen=True)
class Hints:
    """What configuration and code say of the data; None where they do not."""

    vocabulary: int | None = None
    positions: int | None = None
    classes: int | None = None
    rate: int | None = None
    """Samples a second of sounds."""
    told_by: Mapping[str, str] = field(default_factory=dict)
    """Where each was read, by name."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows of each file by its base name, as a manifest says."""
    manifest: str = ""
    token_names: Mapping[int, str] = field(default_factory=dict)
    """Special tokens that a vocabulary or a tokeniser beside the data names."""
    highest_id: int | None = None
    """The highest id of a vocabulary that lies beside the data."""
    token_dtype: str = ""
    """uint16 or uint32: what files of tokens are read as."""
    tables: tuple[tuple[str, dict[str, Sequence[object]]], ...] = ()
    """What JSON files say of each data file: where, and by property a value for each file, names among them."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Means and standard deviations of channels or features that a file beside the data says."""

    file: str
    field: str
    """What they are said to be of, "" where the file does not say."""
    names: tuple[str, ...]
    """Of the channels, () where they have none."""
    means: Array
    spreads: Array


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers that a file beside the data gives to classes or tokens."""

    file: str
    field: str
    """What they are called."""
    names: tuple[str, ...]
    """Of the classes, () where they are numbered from 0."""
    values: Array
    """float64."""


@dataclass(frozen=True, eq=False)
class View:
    """Everything that the observations judge."""

    sets: tuple[DataSet, ...]
    hints: Hints = Hints()
    listings: tuple[Listing, ...] = ()
    """The columns that list files which are there."""
    statistics: tuple[Statistics, ...] = ()
    """What files beside the data say of their means and standard deviations."""
    counts: tuple[Counts, ...] = ()
    """What files beside the data say of their classes and tokens."""
    name_lists: tuple[NameList, ...] = ()
    """Names with an index each, of files beside the data."""
    modified: Mapping[str, float] = field(default_factory=dict)
    """When each file was written last, in seconds since 1970, by its name as the user gave it."""

    @cached_property
    def comparisons(self) -> int:
        """Shards x fields of all sets."""
        return max(1, sum(d.comparisons for d in self.sets))
