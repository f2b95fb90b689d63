"""What a file says of its own content: attributes of HDF5, scalars and short lists beside the arrays of npz and pt,
metadata of parquet and Arrow schemas, and a JSON file of the same name beside it.

It is read after the file's reader has taken the file, in bounds, and nothing of it is unpickled that the reader would
refuse. What cannot be read says nothing: the file itself was judged by its reader.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import TraindxError
from traindx_tools.on_data.column import Stated

MOST = 200
"""Properties of one file; more are data."""
LONGEST = 64
"""Entries of a list; longer ones are rows."""
MOST_TEXT = 200
DEPTH = 4
MOST_BYTES = 2**16
"""Of a JSON file beside a file, and of an array within one."""
_MISSING = (KeyError, ValueError, TypeError, OSError, EOFError, AttributeError, IndexError, RuntimeError,
            RecursionError, OverflowError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error,
            pickle.UnpicklingError, TraindxError, ImportError)


def stated_of(path: Path, form: str) -> dict[str, Stated]:
    """Properties by name, those of a field as `field.name`. Empty where the file says nothing that can be read."""
    found: dict[str, Stated] = {}
    for read in (_READ.get(form), _beside):
        try:
            for name, value in read(path) if read is not None else ():
                told = plain(value)
                if told is not None and len(found) < MOST:
                    found.setdefault(name, told)
        except _MISSING:
            continue
    return found


def plain(value: Any) -> Stated | None:
    """A number, a text or a short list of either; None for anything else."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist() if getattr(value, "size", 1) <= LONGEST and value.dtype.kind in "biufSUO" else None
    if isinstance(value, (list, tuple)):
        return _listed([plain(v) for v in value]) if 0 < len(value) <= LONGEST else None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.strip() if 0 < len(value.strip()) <= MOST_TEXT else None
    if isinstance(value, (bool, int, float)):
        number = float(value) if abs(value) < 1e300 else math.nan
        return number if math.isfinite(number) else None
    return None


def _listed(entries: list[Stated | None]) -> Stated | None:
    texts = tuple(e for e in entries if isinstance(e, str))
    numbers = tuple(e for e in entries if isinstance(e, float))
    return texts if len(texts) == len(entries) else numbers if len(numbers) == len(entries) else None


def _within(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """An object of properties as these, one by one; a text that is an object of JSON likewise."""
    if isinstance(value, (bytes, str, np.bytes_, np.str_)) and len(value) <= MOST_BYTES:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        value = json.loads(text) if text.lstrip().startswith("{") else value
    if isinstance(value, Mapping):
        for key, inner in list(value.items())[:MOST]:
            if depth < DEPTH:
                yield from _within(f"{name}.{key}" if name else str(key), inner, depth + 1)
    else:
        yield name, value


def _of_hdf5(path: Path) -> Iterator[tuple[str, Any]]:
    import h5py

    with h5py.File(path, "r") as file:
        yield from _of_group(h5py, file, "", 0)


def _of_group(h5py: Any, item: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key in list(item.attrs)[:MOST]:
        try:
            value = item.attrs[key]
        except (OSError, TypeError, ValueError):
            continue
        yield from _within(f"{name}.{key}" if name else str(key), value)
    if isinstance(item, h5py.Group) and depth < DEPTH and len(item) <= MOST:
        for key in item:
            if isinstance(item.get(key, getlink=True), h5py.HardLink):
                yield from _of_group(h5py, item[key], f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(item, h5py.Dataset) and not item.shape and not (item.is_virtual or item.external):
        yield name, item[()]


def _of_npz(path: Path) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        small = [m for m in archive.infolist() if m.filename.endswith(".npy") and m.file_size <= MOST_BYTES]
        for member in small[:MOST]:
            try:
                array = np.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
            except ValueError:
                continue
            if array.ndim < 2:
                yield from _within(member.filename.removesuffix(".npy"), array.item() if array.ndim == 0 else array)


def _of_torch(path: Path) -> Iterator[tuple[str, Any]]:
    from traindx_tools.on_data.readers.torch_zip import plain_values

    yield from _within("", plain_values(path))


def _of_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow.parquet

    yield from _of_schema(pyarrow.parquet.read_schema(path))


def _of_arrow(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            schema = pa.ipc.open_file(source).schema
        except pa.ArrowInvalid:
            source.seek(0)
            schema = pa.ipc.open_stream(source).schema
    yield from _of_schema(schema)


def _of_schema(schema: Any) -> Iterator[tuple[str, Any]]:
    for name, metadata in (("", schema.metadata), *((f.name, f.metadata) for f in schema)):
        for key, value in (metadata or {}).items():
            called = key.decode("utf-8", "replace")
            if called not in _OF_WRITERS and not called.startswith("PARQUET:"):
                yield from _within(f"{name}.{called}" if name else called, value)


def _beside(path: Path) -> Iterator[tuple[str, Any]]:
    """Of `shard_3.json` beside `shard_3.npy`."""
    beside = path.with_suffix(".json")
    if beside != path and beside.is_file() and beside.stat().st_size <= MOST_BYTES:
        told = json.loads(beside.read_text(encoding="utf-8"))
        if isinstance(told, dict):
            yield from _within("", told)


_OF_WRITERS = frozenset({"pandas", "huggingface", "ARROW:schema", "org.apache.spark.sql.parquet.row.metadata"})
"""What programs that write tables note for their own kind."""
_READ: Mapping[str, Callable[[Path], Iterator[tuple[str, Any]]]] = {
    "hdf5": _of_hdf5, "npz": _of_npz, "pt": _of_torch, "parquet": _of_parquet, "arrow": _of_arrow}
