"""Tables of text: CSV and its kin. Types are told from the cells; a number that stands as text stays a text."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Column, Damage
from traindx_tools.on_data.readers.arrays import text_column
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.json_lines import opened
from traindx_tools.on_data.shard import Shard

EMPTY = frozenset({"", "na", "n/a", "null", "none", "?"})
"""What a cell without a value holds. "nan" and "inf" are numbers that somebody computed."""
DELIMITERS = ",\t;|"
MOST_NAMED = 5


def read_delimited(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The table. Rows with another number of cells than the header are damage. Raises UnreadableInput."""
    with opened(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="") as stream:
        first = list(itertools.islice(stream, 20))
        mark = delimiter_of(first)
        reader = csv.reader(itertools.chain(first, stream), delimiter=mark)
        try:
            rows = list(_rows(reader, bounds))
        except (csv.Error, EOFError, OSError) as error:
            raise UnreadableInput(f"no table ({error})") from None
    if len(rows) < 3:
        raise UnreadableInput("no table of at least two rows")
    head = is_header(rows[0])
    names, body = (rows[0], rows[1:]) if head else ([f"c{i}" for i in range(len(rows[0]))], rows)
    width = len(names)
    odd = [i for i, r in enumerate(body) if len(r) != width]
    whole = [r for r in body if len(r) == width]
    if len(odd) > len(body) // 2 or width < 1:
        raise UnreadableInput("no table: most rows have another number of cells than the first")
    damage = tuple(Damage(f"a row has {len(body[i])} cells and the header {width}", row=i) for i in odd)
    columns = {n: table_column(n, c, name) for n, c in zip(unique(names), zip(*whole, strict=True), strict=True)}
    return (shard_of(columns, name, bounds, odd=damage),)


def shard_of(columns: dict[str, Column], name: str, bounds: Bounds, *, odd: tuple[Damage, ...] = ()) -> Shard:
    """The shard of a table. `odd`: its rows that are left out, as they have another number of cells."""
    rows = next(iter(columns.values())).rows
    read = rows + len(odd)
    notes = (f"only the first {read:,} rows were read",) if read >= bounds.rows else ()
    return Shard(name, "csv", columns, rows, rows, damage=odd, notes=notes)


def _rows(reader: Iterator[list[str]], bounds: Bounds) -> Iterator[list[str]]:
    for count, row in enumerate(reader):
        if count > bounds.rows or bounds.over:
            return
        if row:
            yield row


def delimiter_of(lines: list[str]) -> str:
    """The mark that occurs equally often in the first lines."""
    counts = {d: [line.count(d) for line in lines[:20]] for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda d: (min(counts[d], default=0) > 0, min(counts[d], default=0)))
    return best if any(counts[best]) else ","


def is_header(row: list[str]) -> bool:
    """Whether the first row names the columns: none of its cells is a number."""
    return not any(_is_number(c) for c in row)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def unique(names: list[str]) -> list[str]:
    """The names, with a number behind those that occur again."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return out


def table_column(name: str, cells: tuple[str, ...], file: str) -> Column:
    """A column of numbers, some of which may be missing, or of texts."""
    try:
        return Column(name, "number", numbers_of(cells), file)
    except (ValueError, OverflowError):
        pass
    plain = [c.strip() for c in cells]
    missing = np.fromiter((c.lower() in EMPTY for c in plain), bool, len(plain))
    if missing.all() or not missing.any():
        return text_column(name, list(cells), file)
    try:
        values = np.array([float(c) if not m else np.nan for c, m in zip(plain, missing, strict=True)])
    except (ValueError, OverflowError):
        return text_column(name, list(cells), file)
    return Column(name, "number", values, file, missing=missing)


def numbers_of(cells: tuple[str, ...]) -> Array:
    """int64 where all cells are whole numbers, else float64. Raises ValueError where one is no number, or is a code."""
    values = np.fromiter(map(float, cells), np.float64, len(cells))
    if not (values == np.floor(values)).all() or any("." in c or "e" in c or "E" in c for c in cells):
        return values
    if any(len(c.strip()) > 1 and c.strip().lstrip("-").startswith("0") for c in cells[:1000]):
        raise ValueError("a code, no number")
    return np.array(list(map(int, cells)), np.int64)
