"""Parquet and Arrow tables through pyarrow, column by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.readers.arrow_columns import NOT_CONVERTED, columns_in
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.readers.streamed import PIECES, Kept, as_sample, rows_kept
from traindx_tools.on_data.shard import Shard


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
            if bounds.share:
                return (_sampled(file, total, name, bounds),)
            batches = []
            read = 0
            for batch in file.iter_batches(batch_size=65_536):
                batches.append(batch)
                read += len(batch)
                if read >= bounds.rows * 10 or bounds.over:
                    break
            table = pa.Table.from_batches(batches, schema=file.schema_arrow)
            table.validate()
    except pa.ArrowNotImplementedError as error:
        raise UnreadableInput(f"pyarrow cannot read it ({str(error)[:100]})") from None
    except (pa.ArrowException, OSError) as error:
        raise Broken(f"the parquet file is damaged ({str(error)[:100]})") from None
    return (_shard(table, total, name, "parquet"),)


def _sampled(file: Any, total: int, name: str, bounds: Bounds) -> Shard:
    """A sample of a large table, and what one pass over all of it finds. Raises ArrowException."""
    import pyarrow as pa

    kept = Kept(rows_kept(bounds, file.metadata.num_columns))
    taken = []
    for batch in file.iter_batches(batch_size=min(65_536, max(1024, total // PIECES)), use_threads=False):
        taken.append(batch.take(pa.array(kept.of_block(len(batch), len(batch) / total, _numbers_in(batch)))))
        if bounds.over:
            break
    table = pa.Table.from_batches(taken, schema=file.schema_arrow)
    chosen = kept.chosen()
    shard = _shard(table.filter(pa.array(chosen)), int(chosen.sum()), name, "parquet")
    numbers = np.concatenate(kept.numbers)[chosen]
    return as_sample(shard, numbers, total, kept.whole())


def _numbers_in(batch: Any) -> dict[str, Array]:
    """The fields of single numbers; an empty cell is 0, as it is told by others."""
    import pyarrow.types as types

    found = {}
    for field, column in zip(batch.schema.names, batch.columns, strict=True):
        if types.is_integer(column.type) or types.is_floating(column.type):
            column = column.fill_null(0) if column.null_count else column
            found[field] = np.asarray(column.to_numpy(zero_copy_only=False))
    return found


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
            table.validate()
            first = table.slice(0, bounds.rows * 10)
            first.validate(full=True)  # offsets that lead out of a buffer end the process where they are followed
    except pa.ArrowNotImplementedError as error:
        raise UnreadableInput(f"pyarrow cannot read it ({str(error)[:100]})") from None
    except (pa.ArrowException, OSError) as error:
        raise Broken(f"the Arrow file is damaged ({str(error)[:100]})") from None
    return (_shard(first, len(table), name, "arrow"),)


def _shard(table: Any, total: int, name: str, form: str) -> Shard:
    if not len(table):
        raise UnreadableInput("a table without rows")
    columns: dict[str, Column] = {}
    unread = []
    for at, field in enumerate(table.column_names):
        try:
            columns |= columns_in(field, table.column(at), name)
        except NOT_CONVERTED as error:
            said = str(error).partition("\n")[0][:80]
            unread.append(f"the field {field!r} of type {str(table.column(at).type)[:60]} was not read ({said})")
    if not columns:
        raise UnreadableInput("; ".join(unread) or "a table without fields")
    if len(table) < total:
        unread.insert(0, f"only the first {len(table):,} of {total:,} rows were read")
    return Shard(name, form, columns, len(table), total, notes=tuple(unread))
