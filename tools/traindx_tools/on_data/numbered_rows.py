"""Tables of the running model beside files that name their rows: filled by name, or by place although names differ.

A file names its rows where a field of it does (a column of words or ids), where a list of as many names lies beside it,
or where each of its lines is a name and numbers, as vectors of words are written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.roles import is_row_id
from traindx_tools.on_data.rules.d176_rows_of_other_names import ALIKE, KNOWN, OTHERWISE, finding_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_variables.numbered import FEWEST, LONGEST, SPECIAL, Numbered

MOST_TABLES = 40
MOST_BYTES = 2**28
"""Of a text of vectors."""
MOST_COLUMNS = 1_024
_VECTORS = (".txt", ".vec", ".tsv", ".glove", ".emb")


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows of a file with their names."""

    file: str
    names: Sequence[str]
    values: Callable[[Sequence[int]], Array]
    """Some rows, shape (rows, columns)."""

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each name."""
        return {name: i for i, name in enumerate(self.names)}


def named_otherwise(held: Sequence[Numbered], sets: Sequence[DataSet], lists: Sequence[NameList],
                    files: Iterable[Path]) -> Iterator[Finding]:
    """A finding for each table that holds a file's rows by place while every numbering names them otherwise."""
    if not held:
        return
    named = list(islice(_named(sets, lists, files), MOST_TABLES))
    for table in dict.fromkeys(h.table for h in held):
        beside = [h for h in held if h.table == table]
        found: Finding | None = None
        for rows in named:
            judged = [_judged(h, rows) for h in beside]
            if any(j is True for j in judged):
                found = None
                break
            found = found or next((j for j in judged if isinstance(j, Finding)), None)
        if found is not None:
            yield found


def _judged(held: Numbered, rows: NamedRows) -> Finding | bool:
    """True where the table holds the file's rows by name, or under the same names; False where it holds others."""
    known = [k for k, name in enumerate(held.names) if name in rows.places]
    if len(known) < max(FEWEST, KNOWN * len(held.names)):
        return False
    ours = np.array(held.values, np.float64)
    by_name = rows.values([rows.places[held.names[k]] for k in known])
    if _same(ours[known], by_name):
        return True
    for shift in range(min(SPECIAL, max(0, held.length - 1)) + 1):
        at = [(k, row - shift) for k, row in enumerate(held.rows) if 0 <= row - shift < len(rows.names)]
        if len(at) < max(FEWEST, KNOWN * len(held.rows)):
            break
        if _same(ours[[k for k, _ in at]], rows.values([i for _, i in at])):
            some = Numbered(held.table, held.numbering, held.file, held.length, tuple(held.rows[k] for k, _ in at),
                            tuple(held.names[k] for k, _ in at), ())
            theirs = [rows.names[i][:LONGEST] for _, i in at]
            apart = sum(a != b for a, b in zip(some.names, theirs, strict=True))
            return finding_of(some, rows.file, theirs, shift) if apart >= OTHERWISE * len(at) else True
    return False


def _same(ours: Array, theirs: Array) -> bool:
    """Whether most columns of the one go along with a column of the other, whatever their scale."""
    a, b = _standard(ours), _standard(theirs)
    if not a.shape[1] or not b.shape[1]:
        return False
    best = np.abs(a.T @ b).max(axis=1) / len(ours)
    return bool(np.mean(best >= ALIKE) > 0.5)


def _standard(x: Array) -> Array:
    """Columns about 0 with a spread of 1, without those that are constant or not finite."""
    x = x[:, np.isfinite(x).all(axis=0)]
    spread = x.std(axis=0)
    kept = spread > 1e-12 * np.maximum(1.0, np.abs(x).max(axis=0, initial=0.0))
    return np.asarray((x[:, kept] - x[:, kept].mean(axis=0)) / spread[kept])


def _named(sets: Sequence[DataSet], lists: Sequence[NameList], files: Iterable[Path]) -> Iterator[NamedRows]:
    for data in sets:
        for shard in data.shards:
            if shard.rows >= FEWEST and shard.numbers is None:
                yield from _of_shard(shard, lists)
    for path in files:
        if path.suffix.lower() in _VECTORS and (found := _of_text(path)) is not None:
            yield found


def _of_shard(shard: Shard, lists: Sequence[NameList]) -> Iterator[NamedRows]:
    matrices = _matrices(shard)
    if not matrices:
        return
    for names in (*_names_within(shard), *(n.names for n in lists if len(n.names) == shard.rows)):
        for file, values in matrices:
            yield NamedRows(file, names, lambda rows, v=values: np.asarray(v[list(rows)], np.float64))  # type: ignore[misc]


def _names_within(shard: Shard) -> Iterator[tuple[str, ...]]:
    """The fields that name each row: texts that do not recur, whole numbers that do not and are not the places."""
    if len(shard.row_names) == shard.rows:
        yield shard.row_names
    for column in shard.columns.values():
        if column.kind == "text" and len(column.texts) == shard.rows and len(set(column.texts)) == shard.rows:
            yield tuple(t[:LONGEST] for t in column.texts)
        elif is_row_id(column) and not np.array_equal(column.values, np.arange(column.rows)):
            yield tuple(map(str, column.values.tolist()))


def _matrices(shard: Shard) -> list[tuple[str, Array]]:
    """The fields of several numbers a row, and all those of one together."""
    out, single = [], []
    for column in shard.columns.values():
        if column.kind != "number" or column.rows != shard.rows or column.values.dtype.kind not in "iuf":
            continue
        if len(column.row_shape) == 1 and 1 < column.row_shape[0] <= MOST_COLUMNS:
            out.append((column.file, column.values))
        elif not column.row_shape:
            single.append(column)
    if len(single) > 1:
        out.append((single[0].file, np.stack([c.values.astype(np.float64) for c in single[:MOST_COLUMNS]], axis=1)))
    return out


def _of_text(path: Path) -> NamedRows | None:
    """Lines of a name and numbers, a first line of their count and width left out; None of any other text."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        with path.open(encoding="utf-8", errors="replace") as stream:
            head = [line for line in islice(stream, 4) if line.strip()]
            if not _is_vectors(head):
                return None
            stream.seek(0)
            lines = stream.read().splitlines()
    except (OSError, ValueError):
        return None
    lines = [line for line in lines[len(head[0].split()) == 2:] if line.strip()]
    width = len(lines[0].split()) - 1

    def some(rows: Sequence[int]) -> Array:
        found = np.full((len(rows), width), np.nan)
        for k, i in enumerate(rows):
            cells = lines[i].split()[-width:]
            if len(cells) == width:
                try:
                    found[k] = [float(c) for c in cells]
                except ValueError:
                    continue
        return np.where(np.isfinite(found), found, 0.0)

    names = [line.split(maxsplit=1)[0][:LONGEST] for line in lines]
    return NamedRows(os.fspath(path), names, some) if len(names) >= FEWEST else None


def _is_vectors(head: Sequence[str]) -> bool:
    """Whether lines are a name and as many numbers each."""
    rows = [line.split() for line in head]
    body = rows[1:] if rows and len(rows[0]) == 2 else rows
    if len(body) < 2 or len({len(r) for r in body}) != 1 or not 3 <= len(body[0]) <= MOST_COLUMNS:
        return False
    try:
        return all(np.isfinite([float(c) for c in r[1:]]).all() for r in body)
    except ValueError:
        return False
