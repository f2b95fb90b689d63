"""MDS, the shards of MosaicML Streaming: `index.json` is not needed, each shard repeats its columns.

A shard is the number of samples (uint32), one offset more (uint32), the columns as JSON, and the samples: the sizes of
the fields that vary (uint32), then the fields one behind the other (streaming/base/format/mds). Pickled fields are
never unpickled.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Damage
from traindx_tools.on_data.readers.arrays import Serialised, sizes_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.mds_arrays import TYPES, array_of, columns_of_arrays
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.readers.pictures import picture_header
from traindx_tools.on_data.readers.records import columns_of, flattened
from traindx_tools.on_data.readers.thumbnails import Thumbnails
from traindx_tools.on_data.shard import Shard


def read_mds(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The samples of a shard. Raises UnreadableInput; Broken where its head is not whole."""
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    offsets, columns = _head(data)
    records: list[dict[str, Any]] = []
    arrays: dict[str, list[Array]] = {}
    damage: list[Damage] = []
    pictures = Thumbnails(bounds)
    total = len(offsets) - 1
    for row in range(min(total, bounds.rows)):
        start, stop = int(offsets[row]), int(offsets[row + 1])
        if not 0 <= start <= stop <= len(data):
            damage.append(Damage("the shard ends early, before its end", row=row))
            break
        records.append(_sample(bytes(data[start:stop]), columns, row, arrays, damage, pictures))
        if bounds.over:
            break
    if not records:
        raise Broken("the shard holds none of the samples that it names")
    notes = () if len(records) == total or damage else (f"only the first {len(records):,} samples were read",)
    found = columns_of(records, name) | columns_of_arrays(arrays, len(records), name)
    found = pictures.with_orientations(found) | pictures.columns(len(records), name)
    return (Shard(name, "mds", found, len(records), total, damage=tuple(damage), notes=notes,
                  sizes=sizes_of(records)),)


def _head(data: Array) -> tuple[Array, list[tuple[str, str, int | None]]]:
    """Where each sample begins and ends, and (name, encoding, bytes or None) of each field."""
    if len(data) < 8:
        raise Broken("the shard ends within its head")
    count = struct.unpack("<I", bytes(data[:4]))[0]
    first = 4 + 4 * (count + 1)
    if count == 0 or first > len(data):
        raise Broken(f"the shard names {count:,} samples and ends within their places")
    offsets = np.frombuffer(bytes(data[4:first]), "<u4").astype(np.int64)
    try:
        told = json.loads(bytes(data[first:int(offsets[0])]))
        columns = list(zip(told["column_names"], told["column_encodings"], told["column_sizes"], strict=True))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Broken("the shard does not say which fields it holds") from None
    if not all(isinstance(n, str) and isinstance(e, str) and (s is None or (isinstance(s, int) and s >= 0))
               for n, e, s in columns):
        raise Broken("the shard's fields are not named as MDS names them")
    return offsets, columns


def _sample(data: bytes, columns: list[tuple[str, str, int | None]], row: int, arrays: dict[str, list[Array]],
            damage: list[Damage], pictures: Thumbnails) -> dict[str, Any]:
    vary = [n for n, _, size in columns if size is None]
    at = 4 * len(vary)
    if at > len(data):
        damage.append(Damage("it ends within the sizes of its fields", row=row))
        return {}
    sizes = dict(zip(vary, struct.unpack(f"<{len(vary)}I", data[:at]), strict=True))
    out: dict[str, Any] = {}
    for name, encoding, size in columns:
        length = sizes[name] if size is None else size
        part = data[at:at + length]
        at += length
        if len(part) < length:
            damage.append(Damage(f"its {name} ends early", row=row))
            continue
        try:
            out.update(_field(name, encoding, part, arrays))
            if encoding in ("jpeg", "png"):
                pictures.take(name, part, row)
        except (ValueError, struct.error, RecursionError) as error:
            damage.append(Damage(f"its {name} cannot be read: {str(error)[:80]}", row=row))
        except UnreadableInput as error:
            damage.append(Damage(f"its {name} cannot be read: {error}", row=row))
    return out


def _field(name: str, encoding: str, data: bytes, arrays: dict[str, list[Array]]) -> dict[str, Any]:
    """A field as fields of the table; arrays of a fixed form go into `arrays`."""
    kind, _, form = encoding.partition(":")
    if kind == "str" or kind in ("str_int", "str_float", "str_decimal"):
        text = data.decode("utf-8")
        return {name: text if kind == "str" else float(text) if kind != "str_int" else int(text)}
    if kind == "int":
        return {name: struct.unpack("<q", data)[0]}
    if kind in TYPES:
        value = np.frombuffer(data, np.dtype(kind).newbyteorder("<"))[0]
        return {name: float(value) if value.dtype.kind == "f" else int(value)}
    if kind == "ndarray":
        arrays.setdefault(name, []).append(array_of(data, form))
        return {}
    if kind == "json":
        told = json.loads(data)
        return {f"{name}.{k}": v for k, v in flattened(told).items()} if isinstance(told, dict) else {name: told}
    sizes = {f"{name}.{k}": v for k, v in picture_header(data).items()} if kind in ("jpeg", "png") else {}
    return {**sizes, name: Serialised.of(data)}
