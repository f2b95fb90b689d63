"""Times that stand in the same place of many lines."""

from __future__ import annotations

import math

import numpy as np

from traindx_tools.on_logs.readers import prefixes
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.readers.line_numbers import Place
from traindx_tools.on_logs.run import Floats, Ints

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DATED = (b"0000-00-00 00:00:00", b"0000/00/00 00:00:00", b"0000-00-00T00:00:00")


def times(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    """What `prefixes.moment` says of the text from `at[0]` to `at[1]` of lines of one length, NaN for no time."""
    rows = block.rows(places)[:, at[0]:at[1]]
    mask = bytes(rows[0]).translate(_DIGITS)
    part = mask[20:]
    if mask[:19] not in _DATED or (part and part.strip(b"0")):
        return _one_by_one(block, places, at)
    days = _days(rows)
    hour, minute, second = (Place(i, i + 2, b"00").read(rows) for i in (11, 14, 17))
    seconds = days + (hour * 3600.0 + minute * 60.0 + second)
    return seconds + Place(20, 20 + len(part), b"0" * len(part)).read(rows) / 10.0 ** len(part) if part else seconds


def _days(rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Floats:
    """Seconds up to each date: lines that follow each other often share it."""
    key = Place(0, 4, b"0000").read(rows) * 1e4 + Place(5, 7, b"00").read(rows) * 100 + Place(8, 10, b"00").read(rows)
    turns = np.concatenate([[0], np.flatnonzero(np.diff(key)) + 1])
    told = [prefixes.stamp(f"{bytes(rows[i, :10]).decode()} 00:00:00") for i in turns]
    return np.repeat([math.nan if t is None else t for t in told], np.diff(np.append(turns, len(rows))))


def _one_by_one(block: Block, places: Ints, at: tuple[int, int]) -> Floats:
    told = (prefixes.moment(block.text(i)[at[0]:at[1]]) for i in places.tolist())
    return np.array([math.nan if t is None else t for t in told])
