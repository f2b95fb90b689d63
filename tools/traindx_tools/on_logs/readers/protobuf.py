"""The wire format of protocol buffers: enough to walk a message without its schema.

Layout from protobuf.dev/programming-guides/encoding: a varint key (field number << 3 | wire type), then the value.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and the position behind it. Raises ValueError where it does not end."""
    shift = number = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"varint without an end at byte {at}")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Field number, wire type and value: an int of a varint, the bytes of anything else.

    Raises ValueError on bytes that are no message.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > end:
            raise ValueError(f"field {number} ends at byte {at + size} of {end}")
        yield number, wire, data[at:at + size]
        at += size
