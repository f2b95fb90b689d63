"""Plain tables of text through pyarrow: no quotes, as many cells in each row, columns that are what they begin as.

What the first rows are told to be by `delimited` is asked of all the others; where one is anything else, the table is
read by `delimited` from its beginning. So both give the same columns, of the same types.
"""

from __future__ import annotations

import csv
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from traindx_tools.on_data.column import Array, Column, at_rows
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.delimited import (
    EMPTY,
    delimiter_of,
    is_header,
    numbers_of,
    read_delimited,
    shard_of,
    table_column,
    unique,
)
from traindx_tools.on_data.readers.json_lines import opened
from traindx_tools.on_data.readers.streamed import FEWEST_ROWS, PIECES, Kept, as_sample, rows_kept
from traindx_tools.on_data.shard import Shard

FEWEST_BYTES = 2**20
"""Bytes from which on it takes less time with pyarrow, whose import costs as much as this reading."""
BLOCK = 2**23
"""Bytes that are converted at once; the time that is left is looked at in between."""
LOOKED_AT = 1000
"""Rows that tell the types, as many as `delimited` looks for codes in."""
RESTARTS = 3
EMPTY_CELLS = sorted({v for e in EMPTY for v in (e, e.upper(), e.capitalize())})
"""Spellings of cells without a value that stay in a plain table."""


class NotPlain(Exception):
    """A table that is not read here."""


@dataclass(frozen=True)
class Empty(Exception):
    """Columns of whole numbers of which a later cell holds nothing: they are floats."""

    places: frozenset[int]


@dataclass(frozen=True)
class Layout:
    """What the first rows tell. `kinds` is "int64", "double" or "string" for each column."""

    mark: str
    names: list[str]
    header: bool
    kinds: list[str]


@dataclass
class Parts:
    """The blocks of a column."""

    values: list[Any] = field(default_factory=list)
    missing: list[Array] = field(default_factory=list)


def read_table(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The table. Rows with another number of cells than the header are damage. Raises UnreadableInput."""
    size = path.stat().st_size
    kept = Kept(0) if bounds.share else None
    columns = plain_columns(path, name, bounds, kept) if size >= FEWEST_BYTES else None
    if columns is None:
        rows = bounds.rows if kept is None else max(FEWEST_ROWS, int(bounds.rows * bounds.share))
        return read_delimited(path, name, replace(bounds, rows=rows))
    if kept is None:
        return (shard_of(columns, name, bounds),)
    chosen = np.flatnonzero(kept.chosen())
    shard = shard_of({n: at_rows(c, chosen) for n, c in columns.items()}, name, replace(bounds, rows=kept.rows + 1))
    return (as_sample(shard, np.concatenate(kept.numbers)[chosen], kept.rows, kept.whole()),)


def plain_columns(path: Path, name: str, bounds: Bounds, kept: Kept | None = None) -> dict[str, Column] | None:
    """The columns of a plain table; None of any other, and where pyarrow is not installed or refuses it.

    `kept`: takes all rows and says which of them the columns hold.
    """
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    floats: frozenset[int] = frozenset()
    for _ in range(RESTARTS):
        try:
            with opened(path) as stream:
                if kept is not None:
                    kept.begin()
                return _columns(stream, name, bounds, floats, kept, path.stat().st_size)
        except Empty as found:
            floats |= found.places
        except (NotPlain, csv.Error, pyarrow.ArrowException, EOFError, OSError, zlib.error):
            return None
    return None


def _columns(stream: IO[bytes], name: str, bounds: Bounds, floats: frozenset[int], kept: Kept | None, size: int
             ) -> dict[str, Column]:
    layout: Layout | None = None
    parts: list[Parts] = []
    for block in _blocks(stream, bounds, min(BLOCK, max(FEWEST_BYTES, size // PIECES)) if kept is not None else BLOCK):
        if layout is None:
            layout = _layout(block, floats)
            if not layout.header and b'"' in block:
                raise NotPlain
            parts = [Parts() for _ in layout.names]
            if kept is not None:
                kept.most = rows_kept(bounds, len(layout.names))
            block = block[block.index(b"\n") + 1:] if layout.header else block
        if block:
            _convert(block, layout, parts, kept, len(block) / size)
        if bounds.over:
            break
    if layout is None:
        raise NotPlain
    named = zip(unique(layout.names), layout.kinds, parts, strict=True)
    return {column: _column(column, kind, some, name) for column, kind, some in named}


def _blocks(stream: IO[bytes], bounds: Bounds, size: int) -> Iterator[bytes]:
    """Whole lines of as many rows as are read, about `size` bytes of them. Raises NotPlain."""
    left = sys.maxsize if bounds.share else bounds.rows + 1
    rest = b"" if (start := stream.read(3)) == b"\xef\xbb\xbf" else start
    wanted, begins = LOOKED_AT + 1, True
    while left > 0:
        read = stream.read(size)
        block = rest + read
        if read and block.count(b"\n") < wanted:
            rest = block
            continue
        wanted = 1
        cut = block.rfind(b"\n") + 1 if read else len(block)
        block, rest = block[:cut], block[cut:]
        if not block:
            return
        ends = _line_ends(block, begins)
        begins = False
        yield block[:ends[left - 1] + 1] if len(ends) >= left else block
        left -= len(ends)


def _line_ends(block: bytes, begins: bool) -> Array:
    """Raises NotPlain of quotes (but around names in a first line), empty or long lines, lone carriage returns, zero
    bytes, and what is no UTF-8.
    """
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    lengths = np.diff(ends, prepend=-1)
    quoted = block.find(b'"', block.find(b"\n") if begins and block.partition(b"\n")[0].count(b'"') % 2 == 0 else 0)
    if quoted >= 0 or b"\0" in block or lengths.min(initial=2) < 2:
        raise NotPlain
    if max(lengths.max(initial=0), len(block) - ends[-1] if len(ends) else len(block)) > csv.field_size_limit():
        raise NotPlain
    if b"\r" in block and (
            block.count(b"\r") != block.count(b"\r\n") or block.startswith(b"\r") or b"\n\r" in block):
        raise NotPlain
    if not block.isascii():
        try:
            block.decode("utf-8")
        except UnicodeDecodeError:
            raise NotPlain from None
    return ends


def _layout(block: bytes, floats: frozenset[int]) -> Layout:
    lines = [line.decode("utf-8") for line in block.split(b"\n", LOOKED_AT + 1)[: LOOKED_AT + 1] if line]
    mark = delimiter_of(lines[:20])
    rows = list(csv.reader(lines, delimiter=mark))
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        raise NotPlain
    header = is_header(rows[0])
    names = rows[0] if header else [f"c{i}" for i in range(len(rows[0]))]
    columns = zip(*(rows[1:] if header else rows), strict=True)
    return Layout(mark, names, header, ["double" if i in floats else _kind(c) for i, c in enumerate(columns)])


def _kind(cells: tuple[str, ...]) -> str:
    """The type of a whole column by its first cells; what they leave open is a text that is looked at afterwards."""
    present = tuple(c for c in cells if c.strip().lower() not in EMPTY)
    try:
        values = np.array(list(map(float, present))) if len(present) < len(cells) else numbers_of(cells)
    except (ValueError, OverflowError):
        return "string"
    return "string" if not len(present) else "int64" if values.dtype.kind == "i" else "double"


def _convert(block: bytes, layout: Layout, parts: list[Parts], kept: Kept | None, share: float) -> None:
    """Appends the cells of a block, a `share` of the file. Raises ArrowInvalid of a cell of another type, NotPlain,
    Empty.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    keys = [str(i) for i in range(len(layout.names))]
    if "int64" in layout.kinds and b"0x" in block.lower():  # whole numbers to pyarrow, texts to Python
        raise NotPlain
    table = arrow_csv.read_csv(
        pyarrow.BufferReader(block),
        read_options=arrow_csv.ReadOptions(column_names=keys, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=layout.mark, quote_char=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict(zip(keys, (pyarrow.type_for_alias(kind) for kind in layout.kinds), strict=True)),
            null_values=EMPTY_CELLS,
            strings_can_be_null=False,
        ),
    )
    if len(table) != block.count(b"\n") + (not block.endswith(b"\n")):
        raise NotPlain
    kinds = list(zip(layout.kinds, table.columns, strict=True))
    if empty := frozenset(i for i, (kind, column) in enumerate(kinds) if kind == "int64" and column.null_count):
        raise Empty(empty)
    numbers = {i: _numbers(block, column) for i, (kind, column) in enumerate(kinds) if kind != "string"}
    rows: Any = slice(None)
    if kept is not None:
        rows = kept.of_block(len(table), share, {keys[i]: np.where(m, 0, v) if m.any() else v
                                                 for i, (v, m) in numbers.items()})
    for i, ((kind, column), some) in enumerate(zip(kinds, parts, strict=True)):
        if kind == "string":
            some.values.extend((column if kept is None else column.take(pyarrow.array(rows))).to_pylist())
        else:
            some.values.append(numbers[i][0][rows])
            some.missing.append(numbers[i][1][rows])


def _numbers(block: bytes, column: Any) -> tuple[Array, Array]:
    """The numbers of a column, and where it has none. Raises NotPlain."""
    values = column.to_numpy()
    missing = column.is_null().to_numpy() if column.null_count else np.zeros(len(values), bool)
    if b"(" in block and (np.isnan(values) & ~missing).any():  # "nan(1)" is a number to pyarrow
        raise NotPlain
    return values, missing


def _column(column: str, kind: str, parts: Parts, file: str) -> Column:
    if kind == "string":
        return table_column(column, tuple(parts.values), file)
    missing = np.concatenate(parts.missing)
    if missing.all():
        raise NotPlain
    return Column(column, "number", np.concatenate(parts.values), file, missing=missing if missing.any() else None)
