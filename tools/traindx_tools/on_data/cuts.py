"""The rows of a set cut into parts: by file, by the words of the files' names, by split, by the values of a field.

Fields that are tried are few (`MOST_FIELDS`), and those that are called as origins are come first: an annotator, a
device, a site. Of any other field of few values a part is told with less weight, since what it stands for may be the
very reason for what is otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.names import words_only
from traindx_tools.on_data.places import short
from traindx_tools.on_data.roles import is_group, is_id_name, is_identifier, is_target, keys
from traindx_tools.on_data.shard import Shard

MOST_FIELDS = 6
MOST_KINDS = 40
FEWEST_PARTS = 3
MOST_CROSSED = 60
"""Parts of files by a field."""
ROWS = 24
"""Rows of a part."""
COVERED = 0.8
"""Share of the rows that parts of that size hold."""
LONGEST = 40
"""Characters of a value that names a group."""
_ORIGIN = re.compile(
    r"(^|[_.])(annotator|rater|grader|scorer|assessor|examiner|tagger|label+er|reviewer|judge|worker|operator|source|origin|provider|vendor|supplier|device|"
    r"sensor|instrument|machine|camera|scanner|microphone|station|site|cent(er|re)|hospital|clinic|lab|plant|line|"
    r"batch|speaker|language|lang|locale|country|region|domain|dataset|corpus|platform|store|shop|user|author|system|"
    r"run|host|session|subject|file|reader|recorder|by|who|agency|market|exchange|model|gateway|channel)s?"
    r"(_?(id|ids|idx|key|name|code|no|nr))?$",
    re.IGNORECASE,
)
_TELLS_UNIT = re.compile(r"(^|[_.])(units?|currency|scale|format|encoding|convention|mode|form|layout|box_?type)$",
                         re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Cut:
    """Parts of the rows. `by`: a field, or "" for files, "split" for splits, "name" for words of the files' names."""

    by: str
    names: tuple[str, ...]
    member: tuple[Array, ...]
    """int64 shape (rows,) of each shard: the part of each row, -1 for none."""
    origin: bool
    """Whether what it is cut by is where rows come from, and hence no reason for another meaning of a field."""

    def told(self, part: int) -> str:
        """`annotator a3`, `part_2.csv`."""
        if self.by in ("", "split", "name", "folder"):
            return self.names[part] + {"": "", "split": " data", "name": "*", "folder": "/"}[self.by]
        return f"the rows of {self.by} {self.names[part]}"


def cuts_of(group: Sequence[Shard], labels: Sequence[str]) -> Iterator[Cut]:
    """Every way to cut the rows into three parts and more; splits may be two."""
    yield from by_file(group)
    splits = list(dict.fromkeys(s.split for s in group))
    if len(splits) > 1 and all(splits):
        yield Cut("split", tuple(splits), _by_shard(group, [splits.index(s.split) for s in group]), True)
    yield from by_field(group, labels)


def by_file(group: Sequence[Shard]) -> Iterator[Cut]:
    """The files, and the files of one name but for numbers."""
    if len(group) >= FEWEST_PARTS:
        yield Cut("", tuple(short(s) for s in group), _by_shard(group, range(len(group))), True)
        stems = [words_only(Path(short(s)).stem) for s in group]
        kinds = list(dict.fromkeys(stems))
        if FEWEST_PARTS <= len(kinds) < len(group):
            yield Cut("name", tuple(kinds), _by_shard(group, [kinds.index(s) for s in stems]), True)


def in_two(group: Sequence[Shard]) -> Iterator[Cut]:
    """Two files, and fields of two values: parts for what tells by itself which of both is the odd one."""
    if len(group) == 2:
        yield Cut("", tuple(short(s) for s in group), _by_shard(group, (0, 1)), True)
    names = [n for n, c in group[0].columns.items() if not is_target(n) and not c.is_float]
    for name in [n for n in names if all(_is_scalar(s.columns.get(n), s.rows) for s in group)][:MOST_FIELDS]:
        values = [keys(s.columns[name]) for s in group]
        kinds = np.unique(np.concatenate(values))
        if len(kinds) == 2:
            member = tuple((v == kinds[1]).astype(np.int64) for v in values)
            yield Cut(name, tuple(_name(group, name, k) for k in kinds), member, called_origin(name))


def crossed(files: Cut, fields: Sequence[Cut]) -> Iterator[Cut]:
    """The rows of each file with each value of a field of few: what one worker did to the rows that it changed."""
    for cut in fields:
        names = tuple(f"{file} with {cut.by} {name}" for file in files.names for name in cut.names)
        if len(names) <= MOST_CROSSED:
            member = tuple(np.where(m >= 0, f * len(cut.names) + m, -1)
                           for f, m in zip(files.member, cut.member, strict=True))
            yield Cut("", names, member, files.origin)


def _is_scalar(column: Column | None, rows: int) -> bool:
    return column is not None and column.rows == rows and not column.row_shape and column.missing is None and (
        column.kind == "number" or (column.kind == "text" and column.digests is not None and len(column.texts) == rows))


def by_folder(group: Sequence[Shard]) -> Iterator[Cut]:
    """The folders, and the names but for numbers, of sounds and pictures that are the rows."""
    if not all(len(s.row_names) == s.rows for s in group):
        return
    paths = [[PurePath(n) for n in s.row_names] for s in group]
    for by, of in (("folder", lambda p: p.parent.name), ("name", lambda p: words_only(p.stem))):
        every = [[of(p) for p in some] for some in paths]
        kinds = list(dict.fromkeys(n for some in every for n in some))
        at = {n: i for i, n in enumerate(kinds)}
        if FEWEST_PARTS <= len(kinds) <= MOST_KINDS:
            yield Cut(by, tuple(kinds), tuple(np.array([at[n] for n in some], np.int64) for some in every), True)


def _by_shard(group: Sequence[Shard], parts: Sequence[int]) -> tuple[Array, ...]:
    return tuple(np.full(s.rows, p, np.int64) for s, p in zip(group, parts, strict=True))


def by_field(group: Sequence[Shard], labels: Sequence[str]) -> Iterator[Cut]:
    """The values of each field that names groups, those called as origins first."""
    names = [n for n in group[0].columns if all(_names_groups(s.columns.get(n), s.rows) for s in group)]
    names = [n for n in names if not is_target(n) and _TELLS_UNIT.search(n) is None]
    made = 0
    for name in sorted(names, key=lambda n: not called_origin(n)):
        cut = _of_field(group, name, called_origin(name))
        if cut is not None:
            yield cut
            made += 1
        if made == MOST_FIELDS:
            return


def called_origin(name: str) -> bool:
    """Whether a field is called as where rows come from is."""
    return _ORIGIN.search(name) is not None or is_group(name)


def _names_groups(column: Column | None, rows: int) -> bool:
    if column is None or column.rows != rows or column.row_shape or column.missing is not None:
        return False
    if column.kind == "text":
        return column.digests is not None and len(column.texts) == rows and not is_identifier(column)
    whole = column.kind == "number" and column.values.dtype.kind in "iu"
    return whole and (called_origin(column.name) or is_id_name(column.name)) and not is_identifier(column)


def _of_field(group: Sequence[Shard], name: str, origin: bool) -> Cut | None:
    some = [keys(s.columns[name]) for s in group]
    if any(len(np.unique(k[:2000])) > MOST_KINDS for k in some):
        return None
    every = np.concatenate(some)
    kinds, counts = np.unique(every, return_counts=True)
    large = kinds[counts >= ROWS]
    if not FEWEST_PARTS <= len(large) <= MOST_KINDS or counts[counts >= ROWS].sum() < COVERED * len(every):
        return None
    at = [np.minimum(np.searchsorted(large, k), len(large) - 1) for k in some]
    member = tuple(np.where(large[a] == k, a, -1) for a, k in zip(at, some, strict=True))
    told = tuple(_name(group, name, k) for k in large)
    origin = origin or (len(group) >= FEWEST_PARTS and len(large) == len(group) and all(
        len(np.unique(m)) == 1 for m in member))  # a value for each file: where its rows come from
    return Cut(name, told, member, origin) if max(map(len, told)) <= LONGEST else None


def _name(group: Sequence[Shard], field: str, key: object) -> str:
    for shard in group:
        column = shard.columns[field]
        if column.kind == "text":
            at = np.flatnonzero(column.digests == key)
            if len(at):
                return repr(column.texts[int(at[0])])
    return str(key)


def told_by_another_field(group: Sequence[Shard], cut: Cut, part: int, beside: Sequence[str]) -> str:
    """A field that has one value in a part and never outside: it says what the part is, as a unit or a form does.

    Fields that are called as origins are go along with each other and say nothing of a meaning.
    """
    if cut.by == "folder":
        return ""  # the folder is the label of its files
    inside = np.concatenate([m == part for m in cut.member])
    for name in group[0].columns:
        if name in beside or name == cut.by or called_origin(name) or is_id_name(name):
            continue
        columns = [s.columns.get(name) for s in group]
        if not all(c is not None and not c.row_shape and c.rows == s.rows and c.kind in ("number", "text")
                   and not (c.kind == "text" and c.digests is None) for c, s in zip(columns, group, strict=True)):
            continue
        values = np.concatenate([keys(c) for c in columns if c is not None])
        own = np.unique(values[inside])
        if len(own) == 1 and float((values[~inside] == own[0]).mean()) <= 0.02:
            return f"its field {name} says so"
    return ""
