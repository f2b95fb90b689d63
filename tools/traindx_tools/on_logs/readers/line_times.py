"""Times that stand in the same place of many lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers import prefixes
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.run import Floats, Ints

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DATED = (b"0000-00-00 00:00:00", b"0000/00/00 00:00:00", b"0000-00-00T00:00:00")
_MOST_DIGITS = 9
_CLOCK = (36_000.0, 3_600.0, 0.0, 600.0, 60.0, 0.0, 10.0, 1.0)
"""Seconds that the digits of HH:MM:SS are worth."""


def times(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    """What `prefixes.moment` says of the text from `at[0]` to `at[1]` of lines of one length, NaN for no time."""
    starts = block.starts[places]
    mask = block.data[starts[0] + at[0]:starts[0] + at[1]].translate(_DIGITS)
    part = mask[20:]
    if mask[:19] not in _DATED or len(part) > _MOST_DIGITS or part.strip(b"0"):
        return _one_by_one(block, places, at)
    begins = starts + at[0]
    windows: NDArray[np.void] = np.ndarray((len(block.data) - len(mask) + 1,), f"V{len(mask)}", buffer=block.data,
                                           strides=(1,))
    signs = windows[begins].view(np.uint8).reshape(len(begins), -1)
    seconds = _days(block.data, begins, signs) + _whole(signs[:, 11:19], _CLOCK)
    if not part:
        return seconds
    return seconds + _whole(signs[:, 20:], [10.0**i for i in reversed(range(len(part)))]) / 10.0 ** len(part)


def _whole(signs: NDArray[np.uint8], worth: Sequence[float]) -> Floats:
    """Whole numbers by what each of their digits is worth: exact, for they are small. Signs may be worth nothing."""
    return np.asarray(signs.astype(np.float64) @ np.array(worth) - 48.0 * sum(worth))


def _days(data: bytes, begins: Ints, signs: NDArray[np.uint8]) -> Floats:
    """Seconds up to each date: lines that follow each other often share it."""
    first = signs[0, :10].tobytes()
    dates: NDArray[np.void] = np.ndarray((len(data) - 9,), "V10", buffer=data, strides=(1,))
    if dates[begins].tobytes() == first * len(begins):
        turns = np.zeros(1, np.int64)
    else:
        turns = np.flatnonzero(np.concatenate([[True], (signs[1:, :10] != signs[:-1, :10]).any(axis=1)]))
    told = [prefixes.stamp(f"{data[b:b + 10].decode()} 00:00:00") for b in begins[turns].tolist()]
    return np.repeat([math.nan if t is None else t for t in told], np.diff(np.append(turns, len(begins))))


def _one_by_one(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    told = (prefixes.moment(block.text(i)[at[0]:at[1]]) for i in places.tolist())
    return np.array([math.nan if t is None else t for t in told])
