"""Columns of Arrow tables as fields, type by type.

Numbers keep their type; dates and times become whole numbers of their unit, dates seconds since 1970, so that they are
known as moments; decimals become float64. What is nested becomes fields, sequences or texts, as records of JSON lines
do. An empty cell is NaN and marked as missing.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.readers.arrays import Serialised, sequence_column, text_column
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.pictures import picture_header
from traindx_tools.on_data.readers.records import columns_of, flattened
from traindx_tools.on_data.readers.thumbnails import Thumbnails, is_picture

NOT_CONVERTED = (ValueError, TypeError, NotImplementedError, KeyError, OverflowError, AttributeError)
"""What pyarrow raises for a type that it cannot convert; its own exceptions derive from these."""


def columns_in(name: str, chunked: Any, file: str) -> dict[str, Column]:
    """The fields that a column makes: one, or those of its structs. Raises one of `NOT_CONVERTED`."""
    chunked = _plain(chunked)
    kind = chunked.type
    import pyarrow.types as types

    if _is_text(kind):
        return {name: text_column(name, [v or "" for v in chunked.to_pylist()], file)}
    if types.is_integer(kind) or types.is_floating(kind):
        return {name: _numbers(name, chunked, file)}
    if types.is_boolean(kind) and not chunked.null_count:
        return {name: Column(name, "number", np.array(chunked.to_pylist(), bool), file)}
    if types.is_temporal(kind) and not types.is_interval(kind):
        return {name: _numbers(name, _as_integers(chunked), file)}
    if types.is_decimal(kind):
        return {name: _numbers(name, chunked.cast("float64", safe=False), file)}
    if _is_list(kind) and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
        return {name: _sequences(name, chunked, file)}
    values = chunked.to_pylist()
    bytes_of = [v.get("bytes") if isinstance(v, dict) else v for v in values]
    pictures = [b for b in bytes_of if isinstance(b, bytes) and is_picture(b)]
    if pictures and len(pictures) == len(values):
        return _pictures(name, values, pictures, file)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        values = [v if v is None else Serialised.of(v) for v in values]
    made = columns_of([flattened({name: v}) for v in values], file)
    if not made:
        raise ValueError("lists of many shapes")
    return made


def _pictures(name: str, values: list[Any], pictures: list[bytes], file: str) -> dict[str, Column]:
    """Pictures as bytes, or as structs with them as data sets of Hugging Face have them: headers and thumbnails."""
    thumbnails = Thumbnails(Bounds())
    records: list[dict[str, Any]] = []
    marks = columns_of([{name: Serialised.of(data)} for data in pictures], file)
    for row, (value, data) in enumerate(zip(values, pictures, strict=True)):
        record = {k: v for k, v in value.items() if k != "bytes"} if isinstance(value, dict) else {}
        with contextlib.suppress(UnreadableInput):
            record |= picture_header(data)
        thumbnails.take(name, data, row)
        records.append({f"{name}.{k}": v for k, v in record.items()})
    return marks | thumbnails.with_orientations(columns_of(records, file)) | dict(thumbnails.columns(len(values), file))


def _plain(chunked: Any) -> Any:
    """Without dictionaries, runs and extension types around the values."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    while True:
        kind = chunked.type
        if types.is_dictionary(kind):
            chunked = pa.chunked_array([c.dictionary_decode() for c in chunked.chunks], type=kind.value_type)
        elif hasattr(types, "is_run_end_encoded") and types.is_run_end_encoded(kind):
            chunked = pa.chunked_array([pc.run_end_decode(c) for c in chunked.chunks], type=kind.value_type)
        elif isinstance(kind, pa.BaseExtensionType):
            chunked = pa.chunked_array([c.storage for c in chunked.chunks], type=kind.storage_type)
        else:
            return chunked


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    view = getattr(types, "is_string_view", None)
    return bool(types.is_string(kind) or types.is_large_string(kind) or (view is not None and view(kind)))


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _as_integers(chunked: Any) -> Any:
    """Times as whole numbers of their unit; dates as seconds since 1970. A type has the integer of its own width."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_date(chunked.type):
        chunked = chunked.cast(pa.timestamp("s" if types.is_date32(chunked.type) else "ms"), safe=False)
    if types.is_time32(chunked.type):
        chunked = chunked.cast("int32")
    return chunked.cast("int64", safe=False)


def _numbers(name: str, chunked: Any, file: str) -> Column:
    missing = np.asarray(chunked.is_null()) if chunked.null_count else None
    return Column(name, "number", np.asarray(chunked.to_numpy()), file, missing=missing)


def _sequences(name: str, chunked: Any, file: str) -> Column:
    return sequence_column(name, [_items(v) for chunk in chunked.chunks for v in chunk], file)


def _items(value: Any) -> Array:
    return np.asarray(value.values) if value.is_valid else np.empty(0, np.int64)
