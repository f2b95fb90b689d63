"""Rows of a data file left out or alone: a changed copy of a CSV, JSON lines, JSON, NumPy, text or Parquet file.

Rows count from 0; a header line is none. Nothing is unpickled.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import BadUsage, MissingExtra

Keep = Callable[[int], list[int]]
"""How many rows there are in, the numbers of those that stay out."""
MOST_BYTES = 2 * 2**30
"""A larger file is not held in memory."""
MARK = b"\xef\xbb\xbf"
"""The mark of byte order that some programs write before UTF-8: a file that has one keeps it."""


def with_rows(path: Path, keep: Keep) -> bytes:
    """The file with the rows that stay, in its own format. Raises BadUsage where the format is not known."""
    if path.stat().st_size > MOST_BYTES:
        raise BadUsage(f"{path.name} has {path.stat().st_size / 2**30:.1f} GiB; rows are left out of files of up to "
                       f"{MOST_BYTES / 2**30:.0f} GiB.")
    name = path.name.lower()
    packed = name.endswith(".gz")
    form = Path(name.removesuffix(".gz")).suffix
    if form not in _FORMATS:
        raise BadUsage(f"rows of {path.name} cannot be chosen: expected one of {', '.join(sorted(_FORMATS))}; "
                       "indices-left-out chooses samples of a DataLoader.")
    try:
        data = path.read_bytes()
        made = _FORMATS[form](gzip.decompress(data) if packed else data, keep)
    except (ValueError, OSError, zipfile.BadZipFile, EOFError, csv.Error, KeyError) as error:
        raise BadUsage(f"{path.name} cannot be read: {error}") from error
    return gzip.compress(made, mtime=0) if packed else made


def _lines(data: bytes, keep: Keep) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[i] for i in keep(len(lines)))


@dataclass(frozen=True, eq=False)
class CsvRows:
    """A table in a text. `lines` with their ends; row i stands in `lines[ends[i]:ends[i + 1]]`, as a row may hold line
    breaks within quotes."""

    lines: list[str]
    ends: list[int]
    rows: list[list[str]]
    head: int
    """Rows that are a header: 0 or 1."""
    between: str
    """What stands between two cells."""
    mark: bytes
    """The mark of byte order in front of the text, where there is one."""

    def line(self, row: int) -> str:
        """A row as it stands in the file."""
        return "".join(self.lines[self.ends[row]:self.ends[row + 1]])


def csv_rows(data: bytes) -> CsvRows:
    """The rows of a CSV or TSV file (UTF-8; commas, semicolons or tabs). Raises ValueError, csv.Error."""
    text = data.decode("utf-8-sig")
    lines = text.splitlines(keepends=True)
    between = max(",;\t", key=(lines[0] if lines else "").count)
    reader = csv.reader(lines, delimiter=between)
    ends, rows = [0], []
    for row in reader:
        rows.append(row)
        ends.append(reader.line_num)
    return CsvRows(lines, ends, rows, int(has_header(rows)), between, MARK if data.startswith(MARK) else b"")


def _table(data: bytes, keep: Keep) -> bytes:
    table = csv_rows(data)
    kept = [*range(table.head), *(i + table.head for i in keep(len(table.rows) - table.head))]
    return table.mark + "".join(map(table.line, kept)).encode()


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is a header: it holds no number, and the second one does or it is unlike every other."""
    if len(rows) < 2 or any(_is_number(c) for c in rows[0]):
        return False
    if any(_is_number(c) for c in rows[1]):
        return True
    return len(set(rows[0])) == len(rows[0]) and list(rows[0]) not in [list(r) for r in rows[1:1000]]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _json(data: bytes, keep: Keep) -> bytes:
    value = json.loads(data)
    if isinstance(value, dict):
        lists = [k for k, v in value.items() if isinstance(v, list)]
        if len(lists) != 1:
            raise ValueError(f"it is no list of rows, and holds {len(lists)} lists")
        value[lists[0]] = [value[lists[0]][i] for i in keep(len(value[lists[0]]))]
    elif isinstance(value, list):
        value = [value[i] for i in keep(len(value))]
    else:
        raise ValueError("it is no list of rows")
    return json.dumps(value).encode()


def _npy(data: bytes, keep: Keep) -> bytes:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if array.ndim == 0:
        raise ValueError("it holds one number and no rows")
    out = io.BytesIO()
    np.save(out, array[keep(len(array))], allow_pickle=False)
    return out.getvalue()


def _npz(data: bytes, keep: Keep) -> bytes:
    """Arrays with as many rows as most have are cut; others (class names, a mean) stay as they are."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays: dict[str, Any] = {n: file[n] for n in file.files}
    lengths = [len(a) for a in arrays.values() if a.ndim]
    if not lengths:
        raise ValueError("it holds no array with rows")
    rows = max(set(lengths), key=lambda n: (lengths.count(n), n))
    kept = keep(rows)
    out = io.BytesIO()
    np.savez(out, **{n: a[kept] if a.ndim and len(a) == rows else a for n, a in arrays.items()})
    return out.getvalue()


def _parquet(data: bytes, keep: Keep) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("rows of a Parquet file", "pyarrow", "data") from error
    table = pq.read_table(pa.BufferReader(data))
    out = pa.BufferOutputStream()
    pq.write_table(table.take(pa.array(keep(table.num_rows))), out)
    return bytes(out.getvalue().to_pybytes())


_FORMATS: dict[str, Callable[[bytes, Keep], bytes]] = {
    ".csv": _table, ".tsv": _table, ".jsonl": _lines, ".ndjson": _lines,
    ".txt": _lines, ".json": _json, ".npy": _npy, ".npz": _npz, ".parquet": _parquet,
}
