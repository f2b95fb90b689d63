"""Files of rows, read and written again with other rows: npy, npz, CSV, JSON lines, parquet. Nothing is unpickled."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import MissingExtra, UnreadableInput

MOST_BYTES = 2 * 2**30
ENDINGS = (".npy", ".npz", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


class RowFile(Protocol):
    """A file that holds rows."""

    @property
    def count(self) -> int:
        """How many rows there are."""

    def digests(self) -> list[bytes]:
        """Of each row: equal where the rows are."""

    def written(self, places: Sequence[tuple[Any, int]]) -> bytes:
        """The file with these rows: each is a file of the same kind and a row of it."""


@dataclass(frozen=True)
class Lines:
    """Rows that are lines of text, or records of several lines where a field of a CSV file holds a line break."""

    head: bytes
    rows: tuple[bytes, ...]

    @property
    def count(self) -> int:
        return len(self.rows)

    def digests(self) -> list[bytes]:
        return [r.rstrip(b"\r\n") for r in self.rows]

    def written(self, places: Sequence[tuple[Lines, int]]) -> bytes:
        rows = (f.rows[i] for f, i in places)
        return self.head + b"".join(r if r.endswith(b"\n") else r + b"\n" for r in rows)


@dataclass(frozen=True)
class Arrays:
    """Arrays whose first axis counts rows, and others that stay as they are."""

    rows: dict[str, NDArray[Any]]
    others: dict[str, NDArray[Any]]
    single: bool

    @property
    def count(self) -> int:
        return len(next(iter(self.rows.values())))

    def digests(self) -> list[bytes]:
        return [b"".join(np.ascontiguousarray(a[i]).tobytes() for a in self.rows.values()) for i in range(self.count)]

    def written(self, places: Sequence[tuple[Arrays, int]]) -> bytes:
        numbers = np.array([i for _, i in places], dtype=np.int64)
        made = {n: np.empty((len(places), *a.shape[1:]), a.dtype) for n, a in self.rows.items()}
        for file in {id(f): f for f, _ in places}.values():
            here = np.array([f is file for f, _ in places])
            for name, array in made.items():
                array[here] = file.rows[name][numbers[here]]
        out = io.BytesIO()
        if self.single:
            np.save(out, made[""])
        else:
            np.savez(out, allow_pickle=False, **made, **self.others)
        return out.getvalue()


@dataclass(frozen=True)
class Table:
    """A parquet file."""

    table: Any

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    def digests(self) -> list[bytes]:
        return [repr(row).encode() for row in self.table.to_pylist()]

    def written(self, places: Sequence[tuple[Table, int]]) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = list({id(f): f for f, _ in places}.values())
        start = dict(zip(map(id, files), np.cumsum([0, *(f.count for f in files)]), strict=False))
        whole = pa.concat_tables([f.table for f in files]) if files else self.table.slice(0, 0)
        out = io.BytesIO()
        pq.write_table(whole.take([int(start[id(f)]) + i for f, i in places]), out)
        return out.getvalue()


def read_rows(path: Path) -> Any:
    """The rows of a file. Raises UnreadableInput, and MissingExtra for parquet without pyarrow."""
    if not path.is_file():
        raise UnreadableInput(f"{path}: there is no such file")
    if path.stat().st_size > MOST_BYTES:
        raise UnreadableInput(f"{path}: larger than {MOST_BYTES // 2**30} GiB; it would be written for each run")
    try:
        made = _read(path)
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        said = " ".join(str(error).split())[:200]
        raise UnreadableInput(f"{path}: cannot be read as {path.suffix}: {said}") from error
    if made.count < 1:
        raise UnreadableInput(f"{path}: holds no rows")
    return made


def _read(path: Path) -> Any:
    ending = path.suffix.lower()
    if ending == ".npy":
        array = np.load(path, allow_pickle=False)
        if array.ndim < 1:
            raise ValueError("a single number has no rows")
        return Arrays({"": array}, {}, True)
    if ending == ".npz":
        return _npz(path)
    if ending in (".csv", ".tsv"):
        return _records(path.read_bytes(), "\t" if ending == ".tsv" else ",")
    if ending in (".jsonl", ".ndjson"):
        return Lines(b"", tuple(r for r in path.read_bytes().splitlines(keepends=True) if r.strip()))
    if ending == ".parquet":
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtra("reading parquet", "pyarrow", "data") from None
        return Table(pq.read_table(path))
    raise UnreadableInput(f"{path}: rows are read from {', '.join(ENDINGS)}")


def _npz(path: Path) -> Arrays:
    """Rows are the first axis that most arrays share."""
    with np.load(path, allow_pickle=False) as held:
        arrays = {n: held[n] for n in held.files}
    lengths = [len(a) for a in arrays.values() if a.ndim]
    if not lengths:
        raise ValueError("it holds no array with rows")
    count = max(set(lengths), key=lambda n: (lengths.count(n), n))
    rows = {n: a for n, a in arrays.items() if a.ndim and len(a) == count}
    return Arrays(rows, {n: a for n, a in arrays.items() if n not in rows}, False)


def _records(data: bytes, comma: str) -> Lines:
    lines = data.splitlines(keepends=True)
    reader = csv.reader((x.decode("utf-8", "surrogateescape") for x in lines), delimiter=comma)
    starts = [0]
    for _ in reader:
        starts.append(reader.line_num)
    records = [b"".join(lines[a:b]) for a, b in itertools.pairwise(starts)]
    records = [r for r in records if r.strip()]
    return Lines(records[0] if records else b"", tuple(records[1:]))
