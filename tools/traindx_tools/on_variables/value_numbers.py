"""Which number the program gives to each text of a column: tables that it read, and whole numbers with as many rows.

A column of names (classes, branches, tokens) becomes a column of numbers, by whatever code. Where an array of the
program has as many rows as a table that it read, and each text of a column stands beside one number of its own, these
are its numbers. Two tables must agree in the numbers of the texts that both have.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.live.files_read import FileRead
from traindx_tools.on_variables.visiting import is_of_jax, visit

ENDINGS = {".csv": ",", ".tsv": "\t"}
MOST_FILES, MOST_BYTES, MOST_ROWS, MOST_COLUMNS = 8, 8 * 2**20, 50_000, 48
FEWEST_ROWS, FEWEST_TEXTS, MOST_TEXTS = 30, 3, 2_000
EACH = 3
"""Rows that a text has on average at least: names of rows are no kinds."""
FEWEST_COMMON = 3
MOST_ARRAYS, MOST_WIDTH = 64, 32


@dataclass(frozen=True, eq=False)
class TextColumn:
    """The texts of a column, and the place of each row's among them."""

    name: str
    texts: tuple[str, ...]
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table that the program read, and the line that did."""

    path: str
    file: str
    line: int
    rows: int
    columns: tuple[TextColumn, ...]


@dataclass(frozen=True)
class Numbering:
    """The number of each text of a column in an array of the program. `at`: its dimensions, and the column there."""

    column: str
    at: tuple[int, int]
    numbers: Mapping[str, int]
    table: ReadTable


@dataclass(frozen=True)
class Clash:
    """Texts of one column that have another number in one table than in the other, which has more rows."""

    column: str
    one: ReadTable
    other: ReadTable
    common: int
    differ: tuple[tuple[str, int, int], ...]
    """Text, its number in `one`, and that in `other`."""


@dataclass
class NumberLooks:
    """Looks at the variables for the numbers of what was read."""

    tables: list[ReadTable] | None = None
    found: dict[tuple[str, str, tuple[int, int]], Numbering] = field(default_factory=dict)

    def look(self, read: Sequence[FileRead], seconds: float) -> None:
        """Files are read once more the first time."""
        if self.tables is None:
            some = [f for f in read if os.path.splitext(f.path)[1].lower() in ENDINGS][:MOST_FILES]
            self.tables = [t for f in some if (t := read_table(f)) is not None]
        if len(self.tables) < 2:
            return
        rows = {t.rows for t in self.tables}
        for visited in islice(visit(lambda value: _whole_numbers(value, rows), seconds), MOST_ARRAYS):
            self._take(visited.taken)

    def _take(self, array: NDArray[np.int64]) -> None:
        flat = array.reshape(len(array), -1)
        for table in self.tables or ():
            if table.rows != len(array):
                continue
            for place in range(flat.shape[1]):
                for column in table.columns:
                    numbers = _numbers_of(column, flat[:, place])
                    if numbers is not None:
                        at = (array.ndim, place)
                        self.found.setdefault((table.path, column.name, at),
                                              Numbering(column.name, at, numbers, table))

    def clashes(self) -> Iterator[Clash]:
        """Columns of two tables whose texts have other numbers."""
        found = sorted(self.found.values(), key=lambda n: -n.table.rows)
        for i, other in enumerate(found):
            for one in found[i + 1:]:
                if one.table is other.table or (one.column, one.at) != (other.column, other.at):
                    continue
                common = sorted(set(one.numbers) & set(other.numbers))
                differ = tuple((t, one.numbers[t], other.numbers[t]) for t in common
                               if one.numbers[t] != other.numbers[t])
                if len(common) >= FEWEST_COMMON and differ:
                    yield Clash(one.column, one.table, other.table, len(common), differ)


def read_table(file: FileRead) -> ReadTable | None:
    """The columns of texts of a table of bounded size with a header; None of any other."""
    try:
        if not 0 < os.path.getsize(file.path) <= MOST_BYTES:
            return None
        with open(file.path, encoding="utf-8", newline="") as stream:
            lines = csv.reader(stream, delimiter=ENDINGS[os.path.splitext(file.path)[1].lower()])
            names = next(lines, [])
            rows = [row for _, row in zip(range(MOST_ROWS + 1), lines, strict=False) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    if not FEWEST_ROWS <= len(rows) <= MOST_ROWS or any(len(row) != len(names) for row in rows):
        return None
    columns = [_texts(n, [row[i] for row in rows]) for i, n in enumerate(names[:MOST_COLUMNS])]
    texts = tuple(c for c in columns if c is not None)
    return ReadTable(file.path, file.file, file.line, len(rows), texts) if texts else None


def _texts(name: str, values: Sequence[str]) -> TextColumn | None:
    if all(_is_number(v) for v in values[:FEWEST_ROWS]):
        return None
    kinds, codes = np.unique(np.array(values), return_inverse=True)
    if not FEWEST_TEXTS <= len(kinds) <= min(MOST_TEXTS, len(values) // EACH):
        return None
    return TextColumn(name, tuple(str(k) for k in kinds), codes.reshape(-1).astype(np.int64))


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def _whole_numbers(value: Any, rows: set[int]) -> NDArray[np.int64] | None:
    """Whole numbers on the host with as many rows as a table; None of anything else."""
    kind = type(value)
    if kind is not np.ndarray and not is_of_jax(value) and kind.__module__.partition(".")[0] != "torch":
        return None
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) not in (1, 2) or shape[0] not in rows or (len(shape) == 2 and shape[1] > MOST_WIDTH):
        return None
    if getattr(getattr(value, "device", None), "type", "cpu") != "cpu" or "int" not in str(value.dtype):
        return None
    return np.asarray(value).astype(np.int64)


def _numbers_of(column: TextColumn, values: NDArray[np.int64]) -> dict[str, int] | None:
    """The number of each text, where each has one and no two have the same."""
    first = np.full(len(column.texts), -1, np.int64)
    first[column.codes] = values
    if not np.array_equal(first[column.codes], values) or len(np.unique(first)) != len(first):
        return None
    return dict(zip(column.texts, map(int, first), strict=True))
