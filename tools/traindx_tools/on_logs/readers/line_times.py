"""Times that stand in the same place of many lines."""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_logs.readers import prefixes
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.readers.line_numbers import digits
from traindx_tools.on_logs.run import Floats, Ints

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DATED = (b"0000-00-00 00:00:00", b"0000/00/00 00:00:00", b"0000-00-00T00:00:00")
_MOST_DIGITS = 9


def times(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    """What `prefixes.moment` says of the text from `at[0]` to `at[1]` of lines of one length, NaN for no time."""
    starts = block.starts[places]
    mask = block.data[starts[0] + at[0]:starts[0] + at[1]].translate(_DIGITS)
    part = mask[20:]
    if mask[:19] not in _DATED or len(part) > _MOST_DIGITS or part.strip(b"0"):
        return _one_by_one(block, places, at)
    begins = starts + at[0]
    hour, minute, second = (_digits(block.data, begins + i, 2).astype(np.float64) for i in (11, 14, 17))
    seconds = _days(block.data, begins) + (hour * 3600.0 + minute * 60.0 + second)
    return seconds + _digits(block.data, begins + 20, len(part)) / 10.0 ** len(part) if part else seconds


def _digits(data: bytes, at: Ints, count: int) -> Ints:
    return digits(data, at, np.full(len(at), count)).astype(np.int64)


def _days(data: bytes, begins: Ints) -> Floats:
    """Seconds up to each date: lines that follow each other often share it."""
    key = (_digits(data, begins, 4) * 10_000 + _digits(data, begins + 5, 2) * 100 + _digits(data, begins + 8, 2))
    turns = np.concatenate([[0], np.flatnonzero(np.diff(key)) + 1])
    told = [prefixes.stamp(f"{data[b:b + 10].decode()} 00:00:00") for b in begins[turns].tolist()]
    return np.repeat([math.nan if t is None else t for t in told], np.diff(np.append(turns, len(begins))))


def _one_by_one(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    told = (prefixes.moment(block.text(i)[at[0]:at[1]]) for i in places.tolist())
    return np.array([math.nan if t is None else t for t in told])
