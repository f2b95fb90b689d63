"""TensorBoard event files, read without tensorboard: scalars, hyperparameters and texts; images and the like are not.

Field numbers from tensorflow/core/util/event.proto, framework/summary.proto, tensor.proto and tensor_shape.proto. All
scalars are read; nothing is sampled down.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import tfrecord
from traindx_tools.on_logs.readers.names import TRAIN, identify
from traindx_tools.on_logs.readers.protobuf import BYTES, FIXED32, FIXED64, VARINT, fields
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.recorder import Key, Recorder
from traindx_tools.on_logs.readers.scalar_events import Scalars, scalar_events
from traindx_tools.on_logs.readers.tensorboard_beside import Beside
from traindx_tools.on_logs.readers.tfrecord_blocks import Records, record_blocks
from traindx_tools.on_logs.run import Floats, Ints, Run

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE = 1
_TAG, _SIMPLE, _METADATA, _TENSOR = 1, 2, 9, 8
_EPOCH_TAGS = frozenset({"epoch", "train/epoch", "trainer/epoch"})
_FORMATS = {1: ("<f", 4), 2: ("<d", 8), 3: ("<i", 4), 9: ("<q", 8), 14: ("", 2), 19: ("<e", 2)}
"""Bytes of one element by DataType: float, double, int32, int64, bfloat16, half."""
_REPEATED = {5: "<f", 6: "<d"}


def sniff(head: Head) -> float:
    """Sure where the first record holds `brain.Event`, the version that each event file starts with."""
    if not tfrecord.starts_like_records(head.data):
        return 0.0
    return 1.0 if b"brain.Event" in head.data[:80] else 0.6


def read(source: Source) -> Run:
    """Reads the scalars of an event file. Raises OSError."""
    recorder, stats = Recorder(source.name), tfrecord.RecordStats()
    keys: dict[str, Key] = {}
    beside = Beside(source.name)
    with source.open() as stream:
        for records in record_blocks(stream, stats):
            _read_block(records, recorder, keys, beside, stats)
    recorder.even_out()
    artifact = Artifact(source.name, "tensorboard", rows=recorder.read, note=_note(stats, recorder, beside))
    return Run(series=recorder.series(), notes=tuple(beside.notes), config=beside.config, artifacts=(artifact,))


def _read_block(records: Records, recorder: Recorder, keys: dict[str, Key], beside: Beside,
                stats: tfrecord.RecordStats) -> None:
    """Events of one scalar together, the others between them, in the order of the file."""
    together, alone = scalar_events(records)
    if not recorder.has_room(len(records.starts)) or {s.tag for s in together} & _EPOCH_TAGS:
        together, alone = [], np.arange(len(records.starts))
    places = np.concatenate([np.zeros(0, np.int64), *(s.places for s in together)])
    kinds = np.repeat(np.arange(len(together)), [len(s.places) for s in together])
    order = np.argsort(places, kind="stable")
    edges = np.searchsorted(places[order], alone).tolist()
    begin = 0
    for end, at in zip([*edges, len(places)], [*alone.tolist(), -1], strict=True):
        if end > begin:
            _add_together(recorder, keys, together, kinds, order[begin:end], records.first)
            begin = end
        if at >= 0:
            try:
                _read_event(records.one(at), records.first + at, recorder, keys, beside)
            except (ValueError, struct.error, TypeError):
                stats.damaged += 1


def _add_together(recorder: Recorder, keys: dict[str, Key], together: list[Scalars], kinds: Ints, order: Ints,
                  first: int) -> None:
    """Adds a stretch of events: `order` are places in all of `together`, one tag after the other."""
    def all_of(part: str) -> Floats:
        return np.concatenate([getattr(s, part) for s in together])[order]

    lines = np.concatenate([s.places for s in together])[order] + first
    of, values = kinds[order], all_of("values")
    seen, at = np.unique(of, return_index=True)
    found = []
    for kind in seen[np.argsort(at)].tolist():
        tag = together[kind].tag
        here = np.flatnonzero(of == kind)
        found.append((recorder.columns(keys.setdefault(tag, _key(tag))), here, values[here]))
    recorder.append_all(lines, all_of("steps"), np.full(len(lines), math.nan), all_of("times"), found)


def _note(stats: tfrecord.RecordStats, recorder: Recorder, beside: Beside) -> str:
    said = [(f"{stats.damaged} damaged records skipped", stats.damaged),
            ("it ends in the middle of a record", stats.truncated),
            (f"{stats.passed_over} large records (images, graphs) passed over", stats.passed_over),
            (f"{beside.unused} summaries that are no scalar (histograms, images, curves): not used", beside.unused),
            ("it holds no scalars", not len(recorder))]
    return "; ".join([*(text for text, holds in said if holds), *filter(None, [recorder.remark])])


def _read_event(record: bytes, number: int, recorder: Recorder, keys: dict[str, Key],
                beside: Beside) -> None:
    time, step, epoch = math.nan, 0, math.nan
    values: list[tuple[Key, float]] = []
    for tag, wire, value in fields(record):
        if tag == _WALL_TIME and wire == FIXED64:
            time = struct.unpack("<d", _bytes(value))[0]
        elif tag == _STEP and wire == VARINT:
            step = _signed(value)
        elif tag == _SUMMARY and wire == BYTES:
            for name, scalar in _scalars(_bytes(value), number, beside):
                if name in _EPOCH_TAGS:
                    epoch = scalar
                values.append((keys.setdefault(name, _key(name)), scalar))
    if values:
        recorder.add(number, values, step=float(step), epoch=epoch, time=time)


def _key(tag: str) -> Key:
    name = identify(tag)
    return Key(tag, name.group or TRAIN)


def _scalars(summary: bytes, line: int, beside: Beside) -> list[tuple[str, float]]:
    found = []
    for number, wire, value in fields(summary):
        if number == _VALUE and wire == BYTES:
            tag, scalar = _scalar(_bytes(value))
            if tag and scalar is not None:
                found.append((tag, scalar))
            else:
                beside.take(tag, _bytes(value), line)
    return found


def _scalar(value: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, wire, part in fields(value):
        if number == _TAG and wire == BYTES:
            tag = _bytes(part).decode("utf-8", errors="replace")[:200]
        elif number == _SIMPLE and wire == FIXED32:
            scalar = struct.unpack("<f", _bytes(part))[0]
        elif number == _TENSOR and wire == BYTES:
            scalar = _tensor_scalar(_bytes(part))
    return tag, scalar


def _tensor_scalar(tensor: bytes) -> float | None:
    """The single number of a tensor, None where it holds several or is no number."""
    kind, content, count, scalar = 0, b"", 1, None
    for number, wire, part in fields(tensor):
        if number == 1 and wire == VARINT:
            kind = int(part) if isinstance(part, int) else 0
        elif number == 2 and wire == BYTES:
            count = _elements(_bytes(part))
        elif number == 4 and wire == BYTES:
            content = _bytes(part)
        elif number in _REPEATED and wire in (BYTES, FIXED32, FIXED64):
            scalar = _first(_REPEATED[number], _bytes(part))
        elif number in (7, 10) and wire == VARINT:
            scalar = float(_signed(part))
    if count != 1 or kind not in _FORMATS:
        return None
    return scalar if scalar is not None else _decoded(kind, content)


def _elements(shape: bytes) -> int:
    sizes = [size for number, wire, dim in fields(shape) if number == 2 and wire == BYTES
             for inner, kind, size in fields(_bytes(dim)) if inner == 1 and kind == VARINT]
    return math.prod(int(s) for s in sizes if isinstance(s, int))


def _first(layout: str, packed: bytes) -> float | None:
    size = struct.calcsize(layout)
    return float(struct.unpack(layout, packed)[0]) if len(packed) == size else None


def _decoded(kind: int, content: bytes) -> float | None:
    layout, size = _FORMATS[kind]
    if len(content) != size:
        return None
    if kind == 14:  # bfloat16 is the upper half of a float32
        return float(struct.unpack("<f", b"\0\0" + content)[0])
    return float(struct.unpack(layout, content)[0])


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("bytes expected")
    return value


def _signed(value: Any) -> int:
    number = int(value)
    return number - (1 << 64) if number >= 1 << 63 else number


READER = Reader("tensorboard", sniff, read)
