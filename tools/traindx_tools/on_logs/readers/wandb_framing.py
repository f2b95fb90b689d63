"""The framing of a Weights & Biases run file: records cut into chunks, chunks in blocks of 32 KiB, as LevelDB's log.

Layout from wandb/sdk/internal/datastore.py and leveldb/doc/log_format.md: a file header of 7 bytes (":W&B", 0xBEE1,
version), then chunks of checksum, length and type (whole, first, middle, last); a chunk never crosses the
end of a block.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from traindx_tools.on_logs.readers.tfrecord import RecordStats

FILE_HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32 * 1024
MAX_RECORD = 64 * 2**20
"""Bytes of one record that is put together; a longer one is passed over."""
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def records(stream: BinaryIO, stats: RecordStats) -> Iterator[bytes]:
    """The records of a file in order; what is damaged, cut or too large is counted in `stats`.

    After a wrong checksum the rest of its block is left out: the length, which leads to the next chunk, may be wrong.
    """
    joined = bytearray()
    state = ""
    """"open" while a record is put together, "over" where it became too large, else ""."""
    for kind, data in _chunks(stream, stats):
        if kind in (_FULL, _FIRST):
            stats.damaged += state == "open"
            joined[:], state = data, "open"
        elif state == "open" and kind in (_MIDDLE, _LAST):
            joined += data
        elif state != "over":  # a chunk without the one before it
            stats.damaged += kind != _MIDDLE
            joined.clear()
            state = ""
            continue
        if len(joined) > MAX_RECORD:
            joined.clear()
            state = "over"
        if kind in (_FULL, _LAST):
            if state == "over":
                stats.passed_over += 1
            else:
                yield bytes(joined)
            state = ""
    stats.truncated = stats.truncated or state == "open"


def _chunks(stream: BinaryIO, stats: RecordStats) -> Iterator[tuple[int, bytes]]:
    """Type and data of each chunk; (0, b"") where something is missing."""
    at = len(stream.read(len(FILE_HEADER)))
    while block := _read(stream, BLOCK - at):
        last = len(block) < BLOCK - at
        at = 0
        place = 0
        while place + _CHUNK.size <= len(block):
            crc, length, kind = _CHUNK.unpack_from(block, place)
            place += _CHUNK.size
            if kind == 0 and length == 0 and crc == 0:  # room that was set aside and not used yet
                break
            data = block[place:place + length]
            if len(data) < length and last:
                stats.truncated = True
                break
            if not _FULL <= kind <= _LAST or zlib.crc32(data, zlib.crc32(bytes([kind]))) != crc:
                yield 0, b""
                break
            yield kind, data
            place += length
        else:
            stats.truncated = stats.truncated or (last and any(block[place:]))
        if last:
            return


def _read(stream: BinaryIO, size: int) -> bytes:
    """As many bytes as there are: an unpacked stream may give fewer at once."""
    pieces = []
    while size > 0 and (piece := stream.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
