"""What an event file holds beside scalars: hyperparameters (the configuration) and texts (notes).

Field numbers from tensorboard/plugins/hparams/plugin_data.proto, google/protobuf/struct.proto and
tensorflow/core/framework/summary.proto and tensor.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.on_logs.readers import notes
from traindx_tools.on_logs.readers.protobuf import BYTES, FIXED64, VARINT, fields
from traindx_tools.on_logs.run import Note

MAX_NOTES = 200
MAX_TEXT = 4_000
MAX_HPARAMS = 1_000
_TENSOR, _METADATA = 8, 9
_STRINGS = 8
_SESSION_START = 3
_EXPERIMENT_TAGS = "_hparams_/"


@dataclass
class Beside:
    """Collected while the events are read."""

    source: str
    config: dict[str, Any] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    unused: int = 0

    def take(self, tag: str, value: bytes, line: int) -> None:
        """One value of a summary that is no scalar. Raises ValueError, struct.error on damage."""
        plugin, content = _plugin(value)
        if plugin == "hparams":
            self.config.update(list(_hparams(content))[:MAX_HPARAMS])
        elif plugin == "text":
            self._text(tag.removesuffix("/text_summary"), value, line)
        else:
            self.unused += not tag.startswith(_EXPERIMENT_TAGS)

    def _text(self, tag: str, value: bytes, line: int) -> None:
        for tensor in _all(value, _TENSOR):
            for raw in _all(tensor, _STRINGS):
                text = " ".join(raw.decode("utf-8", errors="replace").split())[:MAX_TEXT]
                if len(self.notes) < MAX_NOTES:
                    self.notes.append(Note(notes.kind_of(text) or "other", f"{tag}: {text}", self.source, line,
                                           notes.values_of(text)))
                else:
                    self.unused += 1


def _all(message: bytes, field_number: int) -> Iterator[bytes]:
    for number, wire, value in fields(message):
        if number == field_number and wire == BYTES and isinstance(value, bytes):
            yield value


def _first(message: bytes, field_number: int) -> bytes:
    return next(_all(message, field_number), b"")


def _plugin(value: bytes) -> tuple[str, bytes]:
    """Name and content of the plugin that a value is for."""
    data = _first(_first(value, _METADATA), 1)
    return _first(data, 1).decode("utf-8", errors="replace"), _first(data, 2)


def _hparams(content: bytes) -> Iterator[tuple[str, Any]]:
    for entry in _all(_first(content, _SESSION_START), 1):
        name = _first(entry, 1).decode("utf-8", errors="replace")[:200]
        told = _value(_first(entry, 2))
        if name and told is not None:
            yield name, told


def _value(message: bytes) -> float | str | bool | None:
    for number, wire, value in fields(message):
        if number == 2 and wire == FIXED64 and isinstance(value, bytes):
            read: float = struct.unpack("<d", value)[0]
            return read
        if number == 3 and wire == BYTES and isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")[:MAX_TEXT]
        if number == 4 and wire == VARINT:
            return bool(value)
    return None
