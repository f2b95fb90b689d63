"""Data files as tables of columns whose single values can be changed: CSV, TSV, JSON lines, npy, npz, Parquet.

Files with the same number of rows in one folder are one table. A value is changed for that of another row of its
column, so that it is one that the column may hold. Nothing is unpickled or run.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.experiments.interventions.writing.rows import CsvRows, csv_rows

MOST_BYTES = 64 * 2**20
"""A larger file is not looked at."""
FEWEST_ROWS, MOST_ROWS = 60, 400_000
MOST_COLUMNS, MOST_WIDTH = 200, 64
"""Columns of a table; columns of an array that count one by one, above that a row of it is one value."""
Swap = Mapping[int, int]
"""For each changed row the row whose value it gets."""


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `name` within its file, `numbers` where it holds some (float64, shape (rows,)), `texts` else."""

    file: str
    name: str
    numbers: NDArray[np.float64] | None
    texts: tuple[str, ...] | None = None

    def keys(self) -> NDArray[Any]:
        """Values that can be compared, one a row."""
        return self.numbers if self.numbers is not None else np.asarray(self.texts, object)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one file or of several with the same rows."""

    rows: int
    columns: tuple[Column, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files, by their path."""
        return tuple(dict.fromkeys(c.file for c in self.columns))


def tables(files: Iterable[str], root: Path) -> tuple[Table, ...]:
    """The tables of these files (paths below `root`), the one with most rows first; what cannot be read is left out."""
    found: dict[tuple[str, int], list[Column]] = {}
    for name in files:
        path = root / name
        for column in _columns(path, name):
            keys = column.keys()
            if FEWEST_ROWS <= len(keys) <= MOST_ROWS:
                found.setdefault((str(Path(name).parent), len(keys)), []).append(column)
    made = [Table(rows, tuple(columns[:MOST_COLUMNS])) for (_, rows), columns in found.items()]
    return tuple(sorted(made, key=lambda t: -t.rows))


def changed(file: str, root: Path, swaps: Mapping[str, Swap]) -> bytes:
    """The file with values of columns changed: `swaps` by the name of the column. Raises ValueError, OSError."""
    path = root / file
    return _FORMATS[path.suffix.lower()][1](path.read_bytes(), swaps)


def _columns(path: Path, name: str) -> list[Column]:
    known = _FORMATS.get(path.suffix.lower())
    try:
        if known is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return []
        return [Column(name, column, *_typed(values)) for column, values in known[0](path.read_bytes())]
    except (OSError, ValueError, KeyError, EOFError, ImportError, zipfile.BadZipFile, csv.Error, RecursionError):
        return []


def _typed(values: Any) -> tuple[NDArray[np.float64] | None, tuple[str, ...] | None]:
    """Numbers, where nearly all values are; else texts."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64), None
    try:
        return np.array([float(v) if v.strip() else np.nan for v in values]), None
    except ValueError:
        return None, tuple(values)


# ---- CSV

def _csv_columns(data: bytes) -> list[tuple[str, Any]]:
    table = csv_rows(data)
    body = table.rows[table.head:]
    width = len(body[0]) if body else 0
    if width < 1 or any(len(r) != width for r in body):
        raise ValueError("its rows are not of one width")
    names = _names(table)
    if len(names) != width:
        names = [str(i) for i in range(width)]
    if len(set(names)) < width:
        raise ValueError("two of its columns have one name")
    return [(names[i], [r[i] for r in body]) for i in range(width)]


def _names(table: CsvRows) -> list[str]:
    return table.rows[0] if table.head else [str(i) for i in range(len(table.rows[0]))]


def _csv_changed(data: bytes, swaps: Mapping[str, Swap]) -> bytes:
    table = csv_rows(data)
    names = _names(table)
    made: dict[int, list[str]] = {}
    for name, swap in swaps.items():
        at = names.index(name)
        for row, donor in swap.items():
            here, there = row + table.head, donor + table.head
            made.setdefault(here, list(table.rows[here]))[at] = table.rows[there][at]
    out = [_written(made[i], table, i) if i in made else table.line(i) for i in range(len(table.rows))]
    return table.mark + "".join(out).encode()


def _written(cells: list[str], table: CsvRows, row: int) -> str:
    line = io.StringIO()
    end = "\r\n" if table.lines[table.ends[row]].endswith("\r\n") else "\n"
    csv.writer(line, delimiter=table.between, lineterminator=end).writerow(cells)
    return line.getvalue()


# ---- JSON lines

def _records(data: bytes) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in data.splitlines() if line.strip()]
    if not all(isinstance(r, dict) for r in found):
        raise ValueError("its lines are no records")
    return found


def _json_columns(data: bytes) -> list[tuple[str, Any]]:
    records = _records(data)
    names = [n for n, v in records[0].items() if isinstance(v, (str, int, float))] if records else []
    return [(n, [str(r.get(n, "")) for r in records]) for n in names]


def _json_changed(data: bytes, swaps: Mapping[str, Swap]) -> bytes:
    records, before = _records(data), _records(data)
    for name, swap in swaps.items():
        for row, donor in swap.items():
            if name in before[donor]:
                records[row][name] = before[donor][name]
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode()


# ---- arrays

def _array_columns(name: str, array: Any) -> list[tuple[str, Any]]:
    if array.ndim == 0 or array.dtype.kind not in "biuf" or not len(array):
        return []
    if array.ndim == 1:
        return [(name, array)]
    flat = array.reshape(len(array), -1)
    if array.ndim == 2 and flat.shape[1] <= MOST_WIDTH:
        return [(f"{name}[:, {i}]", flat[:, i]) for i in range(flat.shape[1])]
    return [(name, flat.astype(np.float64).mean(1))]  # a whole row is one value; its mean tells rows apart


def _swapped(name: str, array: Any, swaps: Mapping[str, Swap]) -> Any:
    made = array.copy()
    for column, swap in swaps.items():
        at, donors = list(swap), list(swap.values())
        if column == name:
            made[at] = array[donors]
        elif column.startswith(f"{name}[:, "):
            index = int(column.removeprefix(f"{name}[:, ")[:-1])
            made[at, index] = array[donors, index]
    return made


def _npy_columns(data: bytes) -> list[tuple[str, Any]]:
    return _array_columns("", np.load(io.BytesIO(data), allow_pickle=False))


def _npy_changed(data: bytes, swaps: Mapping[str, Swap]) -> bytes:
    out = io.BytesIO()
    np.save(out, _swapped("", np.load(io.BytesIO(data), allow_pickle=False), swaps), allow_pickle=False)
    return out.getvalue()


def _npz_columns(data: bytes) -> list[tuple[str, Any]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return [c for n in file.files for c in _array_columns(n, file[n])]


def _npz_changed(data: bytes, swaps: Mapping[str, Swap]) -> bytes:
    out = io.BytesIO()
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        np.savez(out, **{n: _swapped(n, file[n], swaps) for n in file.files})
    return out.getvalue()


# ---- Parquet

def _parquet_columns(data: bytes) -> list[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data))
    found: list[tuple[str, Any]] = []
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            found.append((name, np.array([np.nan if v is None else float(v) for v in table[name].to_pylist()])))
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found.append((name, [v or "" for v in table[name].to_pylist()]))
    return found


def _parquet_changed(data: bytes, swaps: Mapping[str, Swap]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data))
    for name, swap in swaps.items():
        rows = np.arange(table.num_rows)
        rows[list(swap)] = list(swap.values())
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(name), table[name].take(pa.array(rows)))
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return bytes(out.getvalue().to_pybytes())


_Read = Callable[[bytes], list[tuple[str, Any]]]
_Change = Callable[[bytes, Mapping[str, Swap]], bytes]
_FORMATS: dict[str, tuple[_Read, _Change]] = {
    ".csv": (_csv_columns, _csv_changed), ".tsv": (_csv_columns, _csv_changed),
    ".jsonl": (_json_columns, _json_changed), ".ndjson": (_json_columns, _json_changed),
    ".npy": (_npy_columns, _npy_changed), ".npz": (_npz_columns, _npz_changed),
    ".parquet": (_parquet_columns, _parquet_changed),
}
READABLE: Sequence[str] = tuple(_FORMATS)
"""How files end whose values can be changed."""
