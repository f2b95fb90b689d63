"""Parquet and Arrow tables through pyarrow, column by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_data.readers.arrays import column_of, sequence_column, text_column
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.readers.records import columns_of
from traindx_tools.on_data.table import Column, Shard


def read_parquet(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """A parquet table; of a large one the first rows. Raises UnreadableInput, MissingExtra."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingExtra("Reading parquet", "pyarrow", "data") from missing
    try:
        with pq.ParquetFile(path) as file:
            total = file.metadata.num_rows
            batches = []
            read = 0
            for batch in file.iter_batches(batch_size=65_536):
                batches.append(batch)
                read += len(batch)
                if read >= bounds.rows * 10 or bounds.over:
                    break
            table = pa.Table.from_batches(batches, schema=file.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        raise Broken(f"the parquet file is damaged ({str(error)[:100]})") from None
    return (_shard(table, total, name, "parquet"),)


def read_arrow(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """An Arrow file or stream, as data sets of Hugging Face are on disk. Raises UnreadableInput, MissingExtra."""
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise MissingExtra("Reading Arrow files", "pyarrow", "data") from missing
    try:
        with pa.memory_map(str(path)) as source:
            try:
                table = pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                table = pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        raise Broken(f"the Arrow file is damaged ({str(error)[:100]})") from None
    return (_shard(table.slice(0, bounds.rows * 10), len(table), name, "arrow"),)


def _shard(table: Any, total: int, name: str, form: str) -> Shard:
    if not len(table):
        raise UnreadableInput("a table without rows")
    columns = {field: _column(field, table.column(field), name) for field in table.column_names}
    notes = (f"only the first {len(table):,} of {total:,} rows were read",) if len(table) < total else ()
    return Shard(name, form, {k: c for k, c in columns.items() if c is not None}, len(table), total, notes=notes)


def _column(name: str, chunked: Any, file: str) -> Column | None:
    import pyarrow.types as types

    kind = chunked.type
    if types.is_dictionary(kind):
        chunked = chunked.cast(kind.value_type)
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        return text_column(name, [v or "" for v in chunked.to_pylist()], file)
    if types.is_boolean(kind) and not chunked.null_count:
        return column_of(name, np.array(chunked.to_pylist(), bool), file)
    if types.is_integer(kind) or types.is_floating(kind):
        values = chunked.to_numpy()
        missing = np.asarray(chunked.is_null()) if chunked.null_count else None
        return Column(name, "number", values, file, missing=missing)
    if types.is_temporal(kind):
        return column_of(name, chunked.cast("int64", safe=False).to_numpy(), file) if not chunked.null_count else None
    if types.is_list(kind) and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
        joined = chunked.combine_chunks()
        return sequence_column(name, [np.asarray(v.values) if v.is_valid else [] for v in joined], file)
    found = columns_of([{name: v} for v in chunked.to_pylist()], file)
    return found.get(name)
