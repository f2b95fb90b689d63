"""Events of one scalar, as writers make them by the million: those of one tag and length are taken together.

On one event it is worked out where time, step and value stand; events whose other bytes are the same hold nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.protobuf import varint
from traindx_tools.on_logs.readers.tfrecord_blocks import Records
from traindx_tools.on_logs.run import Floats, Ints

FEWEST = 8
MOST_FORMS = 400
"""Tags of one length that are told apart in a block; what is left is read one by one."""
_TIME, _STEP, _SUMMARY, _VALUE, _TAG, _SIMPLE = b"\x09", b"\x10", b"\x2a", b"\x0a", b"\x0a", b"\x15"


@dataclass(frozen=True)
class Scalars:
    """Events of one tag: their places among the records, and what they say."""

    tag: str
    places: Ints
    times: Floats
    steps: Floats
    values: Floats


@dataclass(frozen=True)
class _Form:
    tag: str
    time: int
    step: int
    steps: int
    """Bytes of the step; 0 where the event states none, which is step 0."""
    value: int


def scalar_events(records: Records) -> tuple[list[Scalars], Ints]:
    """Events that were taken together, and the places of all others."""
    found: list[Scalars] = []
    others: list[Ints] = [np.zeros(0, np.int64)]
    for length in np.unique(records.lengths).tolist():
        places = np.flatnonzero(records.lengths == length)
        for _ in range(MOST_FORMS):
            if len(places) < FEWEST:
                break
            form = _form(records.one(int(places[0])))
            if form is None:
                others.append(places[:1])
                places = places[1:]
                continue
            same = _alike(records, form, places, length)
            found.append(_read(records, form, places[same]))
            places = places[~same]
        others.append(places)
    return found, np.sort(np.concatenate(others))


def _form(event: bytes) -> _Form | None:
    """Where the parts of an event stand: time, step, one value with a tag and a float, in the order of writers."""
    try:
        return _parsed(event)
    except (ValueError, IndexError):
        return None


def _parsed(event: bytes) -> _Form | None:
    if event[:1] != _TIME:
        return None
    at, step, steps = 9, 0, 0
    if event[at:at + 1] == _STEP:
        step = at + 1
        _, at = varint(event, step)
        steps = at - step
        if steps > 8:
            return None
    for key in (_SUMMARY, _VALUE):
        size, at = _opened(event, at, key)
        if at + size != len(event):
            return None
    size, at = _opened(event, at, _TAG)
    text = event[at:at + size].decode("utf-8", errors="replace")[:200]
    at += size
    if not text or event[at:at + 1] != _SIMPLE or at + 5 != len(event):
        return None
    return _Form(text, 1, step, steps, at + 1)


def _opened(event: bytes, at: int, key: bytes) -> tuple[int, int]:
    """The size of a field with this key, and where it begins. Raises ValueError for another key."""
    if event[at:at + 1] != key:
        raise ValueError(f"byte {at} begins another field")
    return varint(event, at + 1)


def _alike(records: Records, form: _Form, places: Ints, length: int) -> NDArray[np.bool_]:
    """The records that differ from the first in time, value and the digits of the step alone."""
    rows = np.ndarray((len(records.data) - length + 1,), f"V{length}", buffer=records.data, strides=(1,))[
        records.starts[places]].view(np.uint8).reshape(len(places), length)
    fixed = np.full(length, 0xFF, np.uint8)
    fixed[form.time:form.time + 8] = 0
    fixed[form.step:form.step + form.steps] = 0x80  # whether another byte of the step follows
    fixed[form.value:form.value + 4] = 0
    held = rows & fixed
    return np.asarray((held == held[0]).all(1))


def _read(records: Records, form: _Form, places: Ints) -> Scalars:
    starts = records.starts[places]

    def cut(at: int, kind: str) -> NDArray[np.generic]:
        windows = np.ndarray((len(records.data) - np.dtype(kind).itemsize + 1,), kind, buffer=records.data,
                             strides=(1,))  # fmt: skip
        return np.asarray(windows[starts + at])

    step = np.zeros(len(places), np.int64)
    for i in range(form.steps):
        step |= (cut(form.step + i, "u1").astype(np.int64) & 0x7F) << (7 * i)
    return Scalars(form.tag, places, cut(form.time, "<f8").astype(np.float64), step.astype(np.float64),
                   cut(form.value, "<f4").astype(np.float64))
