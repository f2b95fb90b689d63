"""Arrays of MDS samples whose type or shape stands before their values; the index beside the shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_making import mds_shard

from traindx_tools.on_data import examine
from traindx_tools.on_data.readers.mds_arrays import array_of

Array = np.ndarray[Any, Any]


def packed(array: Array, dtype: bool, width: int = 2) -> bytes:
    """As the streaming library writes an array; `dtype`: whether its type is written too."""
    code = {"uint8": 8, "int16": 17, "int32": 33, "float32": 34, "float64": 66}[array.dtype.name]
    head = bytes([code]) if dtype else b""
    lengths = np.array(array.shape, f"<u{1 << width}").tobytes()
    return head + bytes([array.ndim << 2 | width]) + lengths + array.tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (1, 2, 4)])
def test_arrays_come_back(shape: tuple[int, ...], dtype: str) -> None:
    made = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for width in range(4):
        assert np.array_equal(array_of(packed(made, False, width), dtype), made)
        assert np.array_equal(array_of(packed(made, True, width), ""), made)
    assert np.array_equal(array_of(made.tobytes(), f"{dtype}:{','.join(map(str, shape))}"), made)


@pytest.mark.parametrize(("data", "form"), [
    (b"", ""), (b"\x63", ""), (b"\x21", "int32"), (b"", "int32"), (b"\x05\x03\x00\x00", "int32"), (b"\x00", "int32"),
    (b"\x04\x03\x00", "int32"), (b"\x04\x02" + b"\x00" * 7, "int32"), (b"\x00" * 8, "complex64:1"),
    (b"\x00" * 8, "int32:3")])
def test_bytes_that_are_no_array(data: bytes, form: str) -> None:
    with pytest.raises(ValueError, match=r"array|shape|buffer"):
        array_of(data, form)


@pytest.mark.parametrize("ragged", [False, True])
def test_a_folder(ragged: bool, tmp_path: Path) -> None:
    columns: list[tuple[str, str, int | None]] = [("ids", "ndarray:int32", None), ("label", "int", 8)]
    rows = [np.arange(8 + (i % 5 if ragged else 0), dtype=np.int32) for i in range(40)]
    for k in range(2):
        (tmp_path / f"shard.0000{k}.mds").write_bytes(mds_shard(
            columns, [[packed(r, False), int(i % 3).to_bytes(8, "little")] for i, r in enumerate(rows)]))
    entry = {"column_names": ["ids", "label"], "column_encodings": ["ndarray:int32", "int"], "hashes": [],
             "samples": 40, "raw_data": {"basename": "shard.00000.mds", "bytes": 10, "hashes": {}}}
    (tmp_path / "index.json").write_text(json.dumps({"version": 2, "shards": [entry, entry]}))
    report = examine([tmp_path])
    assert not report.notes
    assert len(report.sets) == 1
    column = report.sets[0].shards[0].columns["ids"]
    assert (column.kind, column.rows) == ("sequence" if ragged else "number", 40)


def test_a_field_of_empty_lists(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"x": i * 0.5, "tags": []}) for i in range(50)))
    assert not examine([tmp_path]).notes
