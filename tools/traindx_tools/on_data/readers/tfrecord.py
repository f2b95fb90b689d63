"""TFRecord: framed records, each a `tf.train.Example` or `SequenceExample`, read without TensorFlow.

A record is its length (uint64), a masked CRC-32C of the length (uint32), the bytes, and a masked CRC-32C of them; the
framing is documented with `tf.data.TFRecordDataset`, the messages in tensorflow/core/example/{example,feature}.proto.
Checksums of lengths are all checked, those of records as long as they take little time.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Damage
from traindx_tools.on_data.readers.arrays import RawBytes, Serialised, sizes_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.readers.pictures import picture_header
from traindx_tools.on_data.readers.records import columns_of
from traindx_tools.on_data.readers.thumbnails import Thumbnails, is_picture
from traindx_tools.on_data.readers.wire import fields, packed_floats, packed_integers
from traindx_tools.on_data.shard import Shard

MOST_RECORD = 2**26
"""Bytes of one record that are read."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""What no text holds."""
CHECKED = 2**22
"""Bytes of records whose checksums are computed: about two seconds."""


def read_tfrecord(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The records of a file, packed with gzip or not. Raises UnreadableInput; Broken where nothing is whole."""
    records: list[dict[str, Any]] = []
    damage: list[Damage] = []
    notes: list[str] = []
    raw = RawBytes()
    pictures = Thumbnails(bounds)
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    with cast(BinaryIO, gzip.GzipFile(path)) if packed else path.open("rb") as stream:
        checked = 0
        try:
            for data, check in _framed(stream, bounds):
                checked += len(data)
                if checked <= CHECKED and _masked(data) != check:
                    damage.append(Damage("its checksum is another than the one written", row=len(records)))
                records.append(_example(data, raw, pictures, len(records)))
                if len(records) >= bounds.rows or bounds.over:
                    notes.append(f"only the first {len(records):,} records were read")
                    break
        except (EOFError, gzip.BadGzipFile, _Unframed) as error:
            if not records:
                raise Broken(str(error) or "the file ends early") from None
            damage.append(Damage(f"{error}, behind record {len(records) - 1}", row=len(records) - 1))
    if not records:
        raise UnreadableInput("a TFRecord file without records")
    if checked > CHECKED:
        notes.append(f"checksums of the first {CHECKED // 2**20} MiB of records were compared")
    columns = pictures.with_orientations(columns_of(records, name)) | dict(pictures.columns(len(records), name))
    shard = Shard(name, "tfrecord", columns, len(records), len(records), damage=tuple(damage),
                  notes=tuple(notes), raw=raw.arrays(), sizes=sizes_of(records))
    return (shard,)


class _Unframed(Exception):
    """What stands where a record should begin is none."""


def _framed(stream: BinaryIO, bounds: Bounds) -> Iterator[tuple[bytes, int]]:
    """Each record's bytes and the masked checksum that stands behind them."""
    total = 0
    while head := stream.read(12):
        if len(head) < 12:
            raise EOFError("the file ends within the head of a record")
        length, check = struct.unpack("<QI", head)
        if _masked(head[:8]) != check:
            raise _Unframed("the checksum of a record's length is wrong")
        total += length
        if length > MOST_RECORD or total > bounds.unpacked:
            raise UnreadableInput(f"refused: a record claims {length:,} bytes" if length > MOST_RECORD else
                                  f"refused: the records hold more than {bounds.unpacked:,} bytes")
        data = stream.read(length)
        foot = stream.read(4)
        if len(data) < length or len(foot) < 4:
            raise EOFError("the file ends within a record")
        yield data, struct.unpack("<I", foot)[0]


def _example(data: bytes, raw: RawBytes, pictures: Thumbnails, row: int) -> dict[str, Any]:
    """The features of an `Example` (1: features) or `SequenceExample` (1: context, 2: feature lists)."""
    out: dict[str, Any] = {}
    try:
        for number, value in fields(data):
            if number in (1, 2) and isinstance(value, bytes):
                for key, feature in _entries(value):
                    out[key] = _feature(feature) if number == 1 else _listed(feature)
    except (ValueError, struct.error):
        return {"record": Serialised.of(data)}
    return {k: v for key, value in out.items() for k, v in _told(key, value, raw, pictures, row).items()} or {
        "record": Serialised.of(data)}


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The entries of a map: repeated messages with key (1) and value (2)."""
    for number, entry in fields(data):
        if number == 1 and isinstance(entry, bytes):
            parts = dict(fields(entry))
            key, value = parts.get(1, b""), parts.get(2, b"")
            if isinstance(key, bytes) and isinstance(value, bytes):
                yield key.decode("utf-8"), value


def _feature(data: bytes) -> list[Any]:
    """The values of a feature: 1 bytes, 2 floats, 3 integers, each a message whose field 1 holds them."""
    for kind, held in fields(data):
        if not isinstance(held, bytes):
            raise ValueError("a list that is no message")
        found = [v for n, v in fields(held) if n == 1]
        if kind == 1:
            return found
        if kind == 2:
            return [x for v in found for x in (packed_floats(v) if isinstance(v, bytes) else [v])]
        if kind == 3:
            return [x for v in found for x in (packed_integers(v) if isinstance(v, bytes) else [_signed(v)])]
    return []


def _listed(data: bytes) -> list[Any]:
    return [x for number, feature in fields(data) if number == 1 and isinstance(feature, bytes)
            for x in _feature(feature)]  # fmt: skip


def _signed(value: Any) -> Any:
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


def _told(key: str, values: list[Any], raw: RawBytes, pictures: Thumbnails, row: int) -> dict[str, Any]:
    """A feature as fields: numbers as they are, a text as a text, other bytes as size, checksum and picture's size."""
    if not values or not isinstance(values[0], bytes):
        return {key: values[0] if len(values) == 1 else values}
    data = b"\n".join(v for v in values if isinstance(v, bytes))
    if not _CONTROL.search(data):  # numbers of few bytes read as UTF-8 as well
        with contextlib.suppress(UnicodeDecodeError):
            return {key: data.decode("utf-8")}
    raw.take(key, data)
    if is_picture(data):
        pictures.take(key, data, row)
    told: dict[str, Any] = {key: Serialised.of(data)}
    with contextlib.suppress(UnreadableInput):
        told |= {f"{key}.{k}": v for k, v in picture_header(data).items()}
    return told


def _table() -> tuple[int, ...]:
    """CRC-32C (Castagnoli), reflected polynomial 0x82F63B78 (RFC 3720, appendix B.4)."""
    out = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        out.append(n)
    return tuple(out)


_CRC = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of these bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> int:
    """The checksum as TFRecord writes it: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
