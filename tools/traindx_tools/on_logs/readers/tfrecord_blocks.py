"""Records of an event file, megabytes at a time: framing and checksums of all records of one length together."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.tfrecord import CRC_TABLE, RecordStats, masked_crc, skipped
from traindx_tools.on_logs.run import Ints

CHUNK = 4 << 20
_TABLE = np.array(CRC_TABLE, np.uint32)
_LENGTH = struct.Struct("<Q")
_HEADER, _FOOTER = 12, 4


@dataclass(frozen=True, eq=False)
class Records:
    """Records whose checksums are right. `starts`: where each begins in `data`; `lengths`: how many bytes it has."""

    data: bytes
    starts: Ints
    lengths: Ints
    first: int
    """The number of the first: records that are damaged or passed over are not counted."""

    def one(self, at: int) -> bytes:
        """The bytes of a record."""
        return self.data[self.starts[at]:self.starts[at] + self.lengths[at]]


def record_blocks(stream: BinaryIO, stats: RecordStats, limit: int = 1 << 16) -> Iterator[Records]:
    """All that `tfrecord.records` tells of, many at once, and the same in `stats`."""
    number, rest = 1, b""
    while True:
        more = stream.read(CHUNK)
        data = rest + more
        starts, at, large = _framed(data, limit)
        good = _with_right_lengths(data, starts)
        found = _checked(data, starts[:good], stats, number)
        number += len(found.starts)
        if len(found.starts):
            yield found
        if good < len(starts):
            stats.damaged += 1
            stats.truncated = True
            return
        if large is not None:
            rest = _passed_over(stream, data, at, large, stats)
            if stats.truncated:
                return
            continue
        rest = data[at:]
        if not more:
            stats.truncated = len(rest) > 0
            if len(rest) >= _HEADER and not _right_length(rest):
                stats.damaged += 1
            return


def _framed(data: bytes, limit: int) -> tuple[list[int], int, int | None]:
    """Where whole records begin, where the first begins that is not whole, and its length where that is too large."""
    starts: list[int] = []
    at, end, unpack = 0, len(data), _LENGTH.unpack_from
    while at + _HEADER <= end:
        (length,) = unpack(data, at)
        if length > limit:
            return starts, at, length if _right_length(data[at:at + _HEADER]) else None
        if at + _HEADER + length + _FOOTER > end:
            break
        starts.append(at)
        at += _HEADER + length + _FOOTER
    return starts, at, None


def _right_length(header: bytes) -> bool:
    return masked_crc(header[:8]) == int.from_bytes(header[8:12], "little")


def _with_right_lengths(data: bytes, starts: list[int]) -> int:
    """How many records there are before the first whose length has a wrong checksum."""
    at = np.array(starts, np.int64)
    wrong = np.flatnonzero(_crc(data, at, 8) != _words(data, at + 8)) if len(at) else at
    return int(wrong[0]) if len(wrong) else len(starts)


def _checked(data: bytes, starts: list[int], stats: RecordStats, first: int) -> Records:
    """The records whose bytes have the right checksum."""
    at = np.array(starts, np.int64)
    lengths = _longs(data, at) if len(at) else at
    right = np.zeros(len(at), bool)
    for length in np.unique(lengths).tolist():
        same = np.flatnonzero(lengths == length)
        begin = at[same] + _HEADER
        right[same] = _crc(data, begin, length) == _words(data, begin + length)
    stats.damaged += int((~right).sum())
    return Records(data, at[right] + _HEADER, lengths[right], first)


def _passed_over(stream: BinaryIO, data: bytes, at: int, length: int, stats: RecordStats) -> bytes:
    """What is left of the data behind a record that is too large."""
    stats.passed_over += 1
    end = at + _HEADER + length + _FOOTER
    if end > len(data) and not skipped(stream, end - len(data)):
        stats.truncated = True
    return data[end:]


def _words(data: bytes, at: Ints) -> NDArray[np.uint32]:
    return np.asarray(np.ndarray((len(data) - 3,), "<u4", buffer=data, strides=(1,))[at], np.uint32)


def _longs(data: bytes, at: Ints) -> Ints:
    return np.asarray(np.ndarray((len(data) - 7,), "<i8", buffer=data, strides=(1,))[at], np.int64)


def _crc(data: bytes, at: Ints, length: int) -> NDArray[np.uint32]:
    """The masked CRC-32C of `length` bytes from each place on."""
    if len(at) < 8:
        return np.array([masked_crc(data[a:a + length]) for a in at.tolist()], np.uint32)
    each = np.frombuffer(data, np.uint8)
    crc = np.full(len(at), 0xFFFFFFFF, np.uint32)
    for i in range(length):
        crc = _TABLE[(crc ^ each[at + i]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    crc ^= np.uint32(0xFFFFFFFF)
    return np.asarray(((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8), np.uint32)
