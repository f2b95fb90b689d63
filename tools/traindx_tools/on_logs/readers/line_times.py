"""Times that stand in the same place of many lines."""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_logs.readers import prefixes
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.readers.line_numbers import Words, digits, words
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
    seconds = _days(block.data, begins) + _clock(words(block.data, begins + 11))
    if not part:
        return seconds
    return seconds + digits(block.data, begins + 20, np.full(len(begins), len(part))) / 10.0 ** len(part)


def _clock(written: Words) -> Floats:
    """Seconds since midnight of times written as HH:MM:SS, eight bytes each."""
    two = (written & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561) >> np.uint64(8)  # ten times a digit and the next
    hour, minute, second = ((two >> np.uint64(shift)) & np.uint64(0xFF) for shift in (0, 24, 48))
    return np.asarray(hour * np.uint64(3600) + minute * np.uint64(60) + second, np.float64)


def _days(data: bytes, begins: Ints) -> Floats:
    """Seconds up to each date: lines that follow each other often share it."""
    early, late = words(data, begins), words(data, begins + 2)
    turns = np.flatnonzero(np.concatenate([[True], (early[1:] != early[:-1]) | (late[1:] != late[:-1])]))
    told = [prefixes.stamp(f"{data[b:b + 10].decode()} 00:00:00") for b in begins[turns].tolist()]
    return np.repeat([math.nan if t is None else t for t in told], np.diff(np.append(turns, len(begins))))


def _one_by_one(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    told = (prefixes.moment(block.text(i)[at[0]:at[1]]) for i in places.tolist())
    return np.array([math.nan if t is None else t for t in told])
