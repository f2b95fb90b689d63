"""Everything that the observations judge: sets of data files, and what lies beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.listings import Listing
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.numbered_names import Numbered
from traindx_tools.on_data.pieces import Pieces
from traindx_tools.on_data.split_files import SplitFile
from traindx_tools.on_data.table import DataSet


@dataclass(frozen=True, eq=False)
class NamedNumbers:
    """A number that a JSON or YAML file beside the data gives to each of some names: {"oslo": {"offset": 1}, ...}."""

    file: str
    path: str
    name: str
    values: Mapping[str, float]


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
    merges: tuple[str, Array] | None = None
    """Where a byte-pair encoding lies beside the data, and the pairs of ids that it merges, int64 shape (pairs, 2)."""
    pieces: Pieces | None = None
    """What each id stands for, by the tokeniser or vocabulary that lies beside the data."""
    by_name: tuple[NamedNumbers, ...] = ()
    """What these files say of names."""
    named: frozenset[str] = frozenset()
    """Texts of settings that have the form of a path with an ending."""
    day_first: str = ""
    """The file that says of a date that its day stands first, "" where none does."""
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
    unfolded: tuple[DataSet, ...] = ()
    """Sets of the groups within files: a group for each station, patient or demonstration."""
    by_file: tuple[DataSet, ...] = ()
    """Groups within files one behind the other, a part for each file."""
    pictures: tuple[DataSet, ...] = ()
    """Pictures and sounds as rows beside their labels."""
    numbered: tuple[Numbered, ...] = ()
    """What lists of files beside the data say of the numbers of classes."""
    kept: tuple[Statistics, ...] = ()
    """Means and spreads that layers of checkpoints beside the data keep."""
    modified: Mapping[str, float] = field(default_factory=dict)
    """When each file was written last, in seconds since 1970, by its name as the user gave it."""
    split_files: tuple[SplitFile, ...] = ()
    """Files that name the rows of each split."""

    @cached_property
    def comparisons(self) -> int:
        """Shards x fields of all sets."""
        return max(1, sum(d.comparisons for d in self.sets))
