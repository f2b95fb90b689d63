"""The records of a Weights & Biases run file: what they hold, by the field numbers of wandb_internal.proto."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from traindx_tools.on_logs.readers.protobuf import BYTES, FIXED64, VARINT, fields

HISTORY, SUMMARY, OUTPUT, CONFIG, STATS, METRIC, OUTPUT_RAW, RUN, EXIT = 2, 3, 4, 5, 7, 12, 13, 17, 18
"""Kinds of records."""
USED = frozenset({HISTORY, CONFIG, STATS, METRIC, OUTPUT, OUTPUT_RAW, RUN})
_PLAIN = frozenset({6, 8, 9, 11, 20, 21, 22, 26, 27, 100})
"""Kinds that say nothing of the training: files, artifacts, telemetry, environment, header, footer, requests."""
_ENVELOPE = frozenset({1, 16, 19, 200})
_NAME_LENGTH = 200


def kind_of(record: bytes) -> tuple[int, bytes]:
    """The kind of a record and its message; (0, b"") where it says nothing of the training. Raises ValueError."""
    for number, wire, value in fields(record):
        if wire == BYTES and isinstance(value, bytes) and number not in _ENVELOPE:
            return (0, b"") if number in _PLAIN else (number, value)
    return 0, b""


def items(message: bytes, field: int = 1) -> Iterator[tuple[str, Any]]:
    """Name and value of each item of a history, a summary, a configuration or statistics. Raises ValueError."""
    for number, wire, value in fields(message):
        if number == field and wire == BYTES and isinstance(value, bytes):
            yield _item(value)


def _item(message: bytes) -> tuple[str, Any]:
    key, nested, content = "", [], None
    for number, wire, value in fields(message):
        if isinstance(value, bytes) and wire == BYTES:
            if number == 1:
                key = text(value)
            elif number == 2:
                nested.append(text(value))
            elif number in (8, 16):
                content = _parsed(value)
        elif number == 6 and wire == FIXED64 and isinstance(value, bytes):
            content = struct.unpack("<d", value)[0]
        elif number == 5 and wire == VARINT and isinstance(value, int):
            content = (value >> 1) ^ -(value & 1)
    return (".".join(nested) or key)[:_NAME_LENGTH], content


def _parsed(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as broken:
        raise ValueError("a value that is no JSON") from broken


def text(value: bytes) -> str:
    """UTF-8, with what is none of it replaced."""
    return value.decode("utf-8", errors="replace")


def strings(message: bytes) -> dict[int, bytes]:
    """The last bytes of each field. Raises ValueError."""
    return {number: value for number, wire, value in fields(message) if wire == BYTES and isinstance(value, bytes)}


def seconds(stamp: bytes) -> float:
    """A `google.protobuf.Timestamp` in seconds. Raises ValueError."""
    found = {number: value for number, wire, value in fields(stamp) if wire == VARINT and isinstance(value, int)}
    return found.get(1, 0) + found.get(2, 0) * 1e-9
