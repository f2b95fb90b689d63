"""Tables that list files, as manifests do, beside the files that are there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import splits_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

FEWEST = 8
"""Names in a column below which it is no list."""
THERE = 0.8
"""Share of the names whose files are there; below, the files are elsewhere."""
MOST_LOOKED_UP = 2_000
"""Names that are looked up on the disk one by one."""
SHARED = 0.5
"""Share of the files of one column that another column of the same rows names too: both draw from one pool."""
PARTNERS = 2
"""Different files beside the typical one, from which on a row is a pair and no file with its mask."""
_NAME = re.compile(r"[^\n]{1,400}\.[A-Za-z0-9]{1,8}")


@dataclass(frozen=True, eq=False)
class Listing:
    """A column of names of files. `at`: for each row the place of its file among all, -1 where it is not there."""

    shard: Shard
    field: str
    at: Array
    files: tuple[str, ...]

    @cached_property
    def splits(self) -> Array:
        """The split of each row: that of the file, or of a column that names it."""
        if self.shard.split:
            return np.full(self.shard.rows, self.shard.split)
        said = (splits_of(c) for c in self.shard.columns.values())
        return next((s for s in said if s is not None), np.full(self.shard.rows, ""))


def listings_of(sets: Sequence[DataSet], files: Sequence[str]) -> tuple[Listing, ...]:
    """The columns that list files; `files`: paths of all that is there."""
    absolute = tuple(dict.fromkeys(os.path.abspath(f).replace(os.sep, "/") for f in files))
    by_name: dict[str, list[int]] = {}
    for i, path in enumerate(absolute):
        by_name.setdefault(path.rpartition("/")[2], []).append(i)
    return tuple(_found(sets, absolute, by_name)) if len(absolute) > FEWEST else ()


def _found(sets: Sequence[DataSet], files: tuple[str, ...], by_name: Mapping[str, list[int]]) -> Iterator[Listing]:
    for shard in (s for d in sets for s in d.shards):
        for name, column in shard.columns.items():
            if not _lists(column):
                continue
            own = os.path.dirname(os.path.abspath(column.file)).replace(os.sep, "/")
            at = np.array([_place(t, files, by_name, own) for t in column.texts], np.int64)
            if float((at >= 0).mean()) >= THERE:
                yield Listing(shard, name, _not_elsewhere(column, at, files), files)


def together(listings: Sequence[Listing]) -> Iterator[Listing]:
    """Tables of the same fields in several folders, each of which lists the files beside it, as one."""
    groups: dict[tuple[str, frozenset[str]], list[Listing]] = {}
    for one in listings:
        groups.setdefault((one.field, frozenset(one.shard.columns)), []).append(one)
    for some in groups.values():
        folders = {os.path.dirname(s.shard.name) for s in some}
        kinds = [{(c.kind, c.row_shape, c.missing is None) for c in (s.shard.columns[n] for s in some)}
                 for n in some[0].shard.columns]
        if len(some) > 1 and len(folders) == len(some) and all(len(k) == 1 for k in kinds):
            columns = {n: _stacked([s.shard.columns[n] for s in some]) for n in some[0].shard.columns
                       if all(s.shard.columns[n].offsets is None and s.shard.columns[n].missing is None for s in some)}
            rows = sum(s.shard.rows for s in some)
            whole = replace(some[0].shard, columns=columns, rows=rows, total=rows, numbers=None, row_names=())
            yield Listing(whole, some[0].field, np.concatenate([s.at for s in some]), some[0].files)


def _stacked(columns: Sequence[Column]) -> Column:
    """The rows of several columns of one kind, one behind the other."""
    digests = [c.digests for c in columns if c.digests is not None]
    return replace(columns[0], values=np.concatenate([c.values for c in columns]),
                   digests=np.concatenate(digests) if len(digests) == len(columns) else None,
                   texts=tuple(t for c in columns for t in c.texts))


def pairings_of(listings: Sequence[Listing]) -> frozenset[tuple[int, str]]:
    """Shards (by identity) and columns whose rows are pairs of one pool of files, each beside several others."""
    found: set[tuple[int, str]] = set()
    for i, one in enumerate(listings):
        for other in listings[i + 1 :]:
            if one.shard is other.shard and _is_pairing(one.at, other.at):
                found |= {(id(one.shard), one.field), (id(other.shard), other.field)}
    return frozenset(found)


def _is_pairing(one: Array, other: Array) -> bool:
    known = (one >= 0) & (other >= 0)
    left, right = np.unique(one[known]), np.unique(other[known])
    few = min(len(left), len(right))
    if not few or (one[known] == other[known]).all() or len(np.intersect1d(left, right)) < SHARED * few:
        return False
    ends = np.sort(np.stack([one[known], other[known]], axis=1), axis=1)
    pairs = np.unique(ends, axis=0)
    _, partners = np.unique(pairs, return_counts=True)
    return float(np.median(partners)) >= PARTNERS


def _lists(column: Column) -> bool:
    if column.kind != "text" or len(column.texts) != column.rows or column.rows < FEWEST:
        return False
    return all(_NAME.fullmatch(t) for t in column.texts[:: max(1, column.rows // 200)])


def _place(text: str, files: Sequence[str], by_name: Mapping[str, list[int]], own: str) -> int:
    """The one file whose path ends so, or the only one of that name; of several that of the table's own folder."""
    wanted = os.path.normpath(text).replace(os.sep, "/").lstrip("./")
    same = by_name.get(wanted.rpartition("/")[2], [])
    ending = [i for i in same if files[i].endswith(f"/{wanted}")]
    if len(ending) > 1:
        ending = [i for i in ending if files[i] == f"{own}/{wanted}"]
        return ending[0] if ending else -1
    return ending[0] if len(ending) == 1 else same[0] if len(same) == 1 and not ending else -1


def _not_elsewhere(column: Column, at: Array, files: Sequence[str]) -> Array:
    """-2 for names that are on the disk though nobody named them, or that were not looked up."""
    first = int(np.argmax(at >= 0))
    tail = os.path.normpath(column.texts[first]).replace(os.sep, "/")
    path = files[at[first]]
    root = path.removesuffix(tail) if path.endswith(tail) else path.rpartition("/")[0]
    out: Array = at.copy()
    for count, row in enumerate(np.flatnonzero(at < 0)):
        name = column.texts[row]
        if count >= MOST_LOOKED_UP or (name.isprintable() and os.path.lexists(os.path.join(root, name))):
            out[row] = -2
    return out
