"""TFRecord and MDS: what is read, and what happens to files that are not whole or not honest."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from data_making import example, framed, mds_shard, png
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data import examine
from traindx_tools.on_data.readers import format_of, read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.tfrecord import crc32c
from traindx_tools.on_data.readers.wire import fields, packed_integers
from traindx_tools.on_data.shard import Shard


def shard_of(path: Path) -> Shard:
    form = format_of(path)
    assert form is not None
    (shard,) = read_file(path, path.name, form, Bounds())
    return shard


def test_the_checksum_is_castagnolis() -> None:
    """The check value of CRC-32C (RFC 3720, B.4, and any table of CRCs)."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_features_of_a_tfrecord(tmp_path: Path) -> None:
    path = tmp_path / "train.tfrecord-00003-of-00016"
    picture = png(np.zeros((4, 6), np.uint8))
    rows = [{"image": [picture], "text": [b"a cat"], "label": [-3 + i], "box": [0.5, 1.5]} for i in range(3)]
    path.write_bytes(b"".join(framed(example(r)) for r in rows))
    shard = shard_of(path)
    assert shard.rows == 3
    assert shard.columns["label"].values.tolist() == [-3, -2, -1]
    assert shard.columns["box"].values.tolist() == [[0.5, 1.5]] * 3
    assert shard.columns["image.width"].values.tolist() == [6, 6, 6]
    assert shard.columns["text"].texts[0] == "a cat"


def test_a_packed_tfrecord_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(framed(example({"y": [7]})) * 4))
    assert shard_of(path).columns["y"].values.tolist() == [7] * 4


def test_a_record_that_was_changed_is_named(tmp_path: Path) -> None:
    whole = [framed(example({"y": [i], "x": [0.25 * i] * 8})) for i in range(5)]
    whole[3] = whole[3][:-9] + bytes([whole[3][-9] ^ 1]) + whole[3][-8:]
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(whole))
    assert [(d.row, "checksum" in d.what) for d in shard_of(path).damage] == [(3, True)]
    assert any("a.tfrecord" in str(f.where.file) for f in examine([tmp_path]).wrong)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_tfrecord_that_was_cut(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes((framed(example({"y": [1], "x": [1.0] * 4})) * 3)[:-cut])
    shard = shard_of(path)
    assert shard.rows == 2
    assert "ends within" in shard.damage[0].what


@pytest.mark.parametrize("data", [b"", b"no record at all, but quite long", struct.pack("<QI", 1 << 60, 0)])
def test_what_is_no_tfrecord(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    with pytest.raises(UnreadableInput):
        shard_of(path)


def test_a_length_that_lies_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    head = struct.pack("<Q", 1 << 40)
    crc = crc32c(head)
    path.write_bytes(head + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF))
    with pytest.raises(UnreadableInput, match="refused: a record claims"):
        shard_of(path)


def test_records_of_another_message_are_told_by_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(b"\xff" * 40) + framed(b"\xfe" * 30))
    assert shard_of(path).sizes["record"].tolist() == [40, 30]


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading_of_messages(data: bytes) -> None:
    try:
        list(fields(data))
        packed_integers(data)
    except ValueError:
        pass


def test_fields_of_an_mds_shard(tmp_path: Path) -> None:
    columns: list[tuple[str, str, int | None]] = [("text", "str", None), ("y", "int", 8), ("w", "float32", 4),
                                                 ("meta", "json", None), ("x", "ndarray:int16:2,2", 8)]
    rows = [[f"row {i}".encode(), struct.pack("<q", -i), struct.pack("<f", 0.5), b'{"source": "web"}',
             np.arange(4, dtype="<i2").tobytes()] for i in range(3)]
    path = tmp_path / "shard.00000.mds"
    path.write_bytes(mds_shard(columns, rows))
    shard = shard_of(path)
    assert shard.columns["y"].values.tolist() == [0, -1, -2]
    assert shard.columns["x"].row_shape == (2, 2)
    assert shard.columns["text"].texts[2] == "row 2"
    assert shard.columns["meta.source"].rows == 3


def test_pickles_in_an_mds_shard_are_not_unpickled(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "ran",))  # type: ignore[return-value]

    path = tmp_path / "shard.00000.mds"
    path.write_bytes(mds_shard([("x", "pkl", None)], [[pickle.dumps(Runs())]] * 3))
    assert len(shard_of(path).sizes["x"]) == 3
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("keep", [0, 6, 30, -3])
def test_an_mds_shard_that_was_cut(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "shard.00000.mds"
    whole = mds_shard([("y", "int", 8)], [[struct.pack("<q", i)] for i in range(20)])
    path.write_bytes(whole[:keep])
    if keep >= 0:
        with pytest.raises(UnreadableInput):
            shard_of(path)
    else:
        shard = shard_of(path)
        assert shard.rows == 19
        assert "ends early" in shard.damage[0].what


@pytest.mark.parametrize("encodings", [[("y", "ndarray:object:2", 8)], [("y", "ndarray:int64:-1", 8)],
                                       [("y", "int", 7)], [("y", "str", None)]])
def test_fields_that_lie_are_damage_and_no_crash(tmp_path: Path, encodings: list[tuple[str, str, int | None]]) -> None:
    path = tmp_path / "shard.00000.mds"
    path.write_bytes(mds_shard(encodings, [[b"\xff" * (encodings[0][2] or 5)]] * 3))
    shard = shard_of(path)
    assert len(shard.damage) >= 1 or shard.columns["y"].rows == 3
