"""Protocol buffers' wire format, as far as records of data use it (protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

MOST_FIELDS = 1_000_000


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """(number, value) of each field of a message. Raises ValueError where the bytes are no message."""
    at = count = 0
    while at < len(data):
        count += 1
        if count > MOST_FIELDS:
            raise ValueError("a message of too many fields")
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("a field without a number")
        value: int | float | bytes
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            length, at = _varint(data, at)
            value, at = data[at:at + length], at + length
        elif kind in (1, 5):
            form, size = ("<d", 8) if kind == 1 else ("<f", 4)
            if at + size > len(data):
                raise ValueError("a number ends early")
            value, at = struct.unpack_from(form, data, at)[0], at + size
        else:
            raise ValueError(f"a field of the wire type {kind}")
        if at > len(data):
            raise ValueError("a field ends early")
        yield number, value


def packed_floats(data: bytes) -> list[float]:
    """float32 values, one behind the other. Raises ValueError on a rest."""
    if len(data) % 4:
        raise ValueError("packed floats end early")
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def packed_integers(data: bytes) -> list[int]:
    """int64 values as varints, one behind the other. Raises ValueError where the last one ends early."""
    out, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        out.append(value - 2**64 if value >= 2**63 else value)
    return out


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number ends early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
