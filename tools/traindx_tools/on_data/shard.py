"""What was read of one data file: named fields x rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from traindx_tools.on_data.column import Array, Column, Contents, Damage, Stated
from traindx_tools.on_data.summary import Summary, summarised


@dataclass(frozen=True, eq=False)
class Whole:
    """What one pass over all rows of a file found whose rows are too many to be looked at one by one."""

    rows: int
    """Rows that the pass saw: fewer than there are where the time was used up."""
    columns: Mapping[str, Column]
    """The fields of all rows, mapped and not in memory; none of a file that is only read from its beginning."""
    digests: Array | None = None
    """uint64 shape (rows,): a hash of the inputs of each row, as `copies.signatures` makes it of a sample."""
    telling: Array | None = None
    """int64, of lines of text, whose hash is of all fields: those that are long enough to be told apart."""
    blank: Mapping[str, Array] = field(default_factory=dict)
    """By field, int64: the rows that are one number throughout."""
    pointed: Array = field(default_factory=lambda: np.empty(0, np.int64))
    """int64: rows that are not finite or far beyond the others; they are in the sample."""


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

    beside: Mapping[str, Array] = field(default_factory=dict)
    """Those arrays, where they hold numbers and are short enough to be kept."""

    raw: Mapping[str, Array] = field(default_factory=dict)
    """uint8 shape (some rows, bytes): the first bytes of fields that are plain bytes of one length."""

    flat_tops: Array | None = None
    """float64 shape (rows, 2), of sounds: extreme as a share of full scale, how flat it is there; NaN: unread."""

    wraps: Array | None = None
    """int64 shape (rows,), of sounds: how often they wrap around at full scale; 0: never, or unread."""

    turned: Array | None = None
    """bool shape (rows,), of sounds: noise as they are, smooth with the bytes of each sample exchanged."""

    sizes: Mapping[str, Array] = field(default_factory=dict)
    """int64 shape (rows,): bytes of fields that are kept serialised, items of arrays of many shapes; -1 where a record
    has none. A size is no measured value: buckets by length, padded or not, make it what it is."""

    left_right: Array | None = None
    """float64 shape (rows, 2), of sounds: correlation of both channels, logarithm of the ratio of their spreads."""

    label_images: Mapping[int, Array] = field(default_factory=dict)
    """uint8 shape (height, width) by row, of pictures of one channel: their upper left part, as stored."""

    deep: Array | None = None
    """float64 shape (rows, 3), of pictures of more than 8 bits: of the values above 0 the median, the logarithm of the
    ratio of their quartiles, and the largest whole number that divides all (0: they are not whole); NaN: unread."""

    stated: Mapping[str, Stated] = field(default_factory=dict)
    """What the file says of its content besides its rows, by name; that of a field as `field.name`."""

    whole: Whole | None = None
    """What a pass over all rows found, where `rows` are a sample of them."""

    @property
    def full(self) -> Shard:
        """The shard with all its rows, where they are mapped; itself where that is what was read."""
        if self.whole is None:
            return self
        return replace(self, columns=self.whole.columns, rows=self.whole.rows, numbers=None, whole=None)

    def row(self, index: int) -> str:
        """A row that was read, as a person finds it in the file (the first is 0)."""
        number = index if self.numbers is None else int(self.numbers[index])
        return f"row {number}" + (f" ({self.row_names[index]})" if self.row_names else "")

    @cached_property
    def summaries(self) -> Mapping[str, Summary]:
        """Statistics of each field."""
        return {name: summarised(column) for name, column in self.columns.items()}
