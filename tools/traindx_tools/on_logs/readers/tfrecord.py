"""TFRecord framing: length, checksum of the length, data, checksum of the data.

Layout from tensorflow/core/lib/io/record_writer.cc: little-endian uint64 length, masked CRC-32C of those 8 bytes, data,
masked CRC-32C of the data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_HEADER = struct.Struct("<QI")
MAX_RECORD = 64 * 2**20
"""Bytes of one record that is looked at; images and graphs may be larger and are passed over."""


def _table() -> tuple[int, ...]:
    entries = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        entries.append(crc)
    return tuple(entries)


CRC_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as TFRecord does."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@dataclass
class RecordStats:
    """What was met while reading."""

    damaged: int = 0
    truncated: bool = False
    passed_over: int = 0


def starts_like_records(head: bytes) -> bool:
    """Whether bytes begin with a record whose length has the right checksum."""
    if len(head) < 12:
        return False
    _, crc = _HEADER.unpack_from(head)
    return bool(masked_crc(head[:8]) == crc)


def records(stream: BinaryIO, stats: RecordStats, limit: int = 1 << 16) -> Iterator[bytes]:
    """The records up to `limit` bytes long; longer ones (images, graphs) are passed over unread.

    A record with a wrong checksum is left out; a wrong length ends the reading, for nothing after it can be trusted.
    """
    while True:
        header = stream.read(12)
        if len(header) < 12:
            stats.truncated = len(header) > 0
            return
        length, crc = _HEADER.unpack(header)
        if masked_crc(header[:8]) != crc:
            stats.damaged += 1
            stats.truncated = True
            return
        if length > limit:
            stats.passed_over += 1
            if not skipped(stream, length + 4):
                stats.truncated = True
                return
            continue
        data = stream.read(length + 4)
        if len(data) < length + 4:
            stats.truncated = True
            return
        if masked_crc(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
            stats.damaged += 1
            continue
        yield data[:-4]


def skipped(stream: BinaryIO, count: int) -> bool:
    """Whether so many bytes could be passed over."""
    while count > 0:
        piece = stream.read(min(count, 1 << 20))
        if not piece:
            return False
        count -= len(piece)
    return True
