"""Rows of a table that are numbers alone, cut with one comparison of all bytes.

In numbers no sign is below "-", but for the one of "1e+05". Where the signs below it are the separators of a row again
and again, nothing else is there: no quote, no comment, no escape code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.readers.spans import Mask, cast_cells
from traindx_tools.on_logs.run import Floats, Ints

LEAST = ord("-")


@dataclass(frozen=True)
class NumberRows:
    """The numbers of some columns, with where there is one (anything stands where there is none), and where lines
    end."""

    cells: dict[int, tuple[Floats, Mask]]
    ends: Ints


def number_rows(data: bytes, order: bytes, wanted: Sequence[int]) -> NumberRows | None:
    """The rows of a text; None where a line is no such row or a cell that is wanted no number.

    `order`: the separators of a row, of which the last ends the line. A last line without any is left out.
    """
    if max(order) >= LEAST:
        return None
    signs, width = np.frombuffer(data, np.uint8), len(order)
    at = np.flatnonzero(signs < LEAST)
    if not len(at) or signs.take(at).tobytes() != order * (len(at) // width):  # take is thrice as fast as signs[at]
        return None
    told = cast_cells(data, 0, at, width, wanted)
    return None if told is None else NumberRows(dict(zip(wanted, told, strict=True)), at[width - 1::width])
