"""Numbers of lines that differ in their digits only, however many these are, cut out and converted by pyarrow.

A line is taken for a row of cells. What stands next to its numbers separates cells; every other cell holds the same
text in all lines, which pyarrow is told to expect, so that lines in which a digit stands elsewhere are refused as a
whole and read in the other way. Conversion is correctly rounded, as `float` is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.line_blocks import DIGITS_AS_ZEROS, Block, cut_out
from traindx_tools.on_logs.run import Floats, Ints

FEWEST = 500
"""Lines of a block from which pyarrow is asked: it is loaded for long logs only."""
MOST_CELLS = 200
_PART = 1 << 16
"""Bytes that are looked at together: they stay in the processor's cache."""
_PLAIN = re.compile(rb"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGIT = re.compile(rb"[0-9]")
_NO_SEPARATOR = re.compile(rb"[\w+\-.\x80-\xff]")
_JOINED = frozenset((b"-", b":", b",", b".", b"d", b"d,", b"day", b"day,", b"days", b"days,", b"h", b"m", b"min"))
"""Between two numbers these may make one of both, depending on how many digits they have: dates, durations, 1,000."""


@dataclass(frozen=True)
class Cells:
    """How the lines of a family fall into cells, from the end of their prefix on."""

    delimiter: bytes
    separators: bytes
    """All that separate cells."""
    prefix: bytes
    """How lines begin, with every digit replaced by 0."""
    skipped: int
    """Cells of the prefix."""
    numbers: tuple[int, ...]
    """The cells of the numbers, in the order of their spans."""
    texts: tuple[tuple[int, str], ...]
    """The other cells, and what stands in them."""

    @property
    def width(self) -> int:
        """Cells of a line."""
        return self.skipped + len(self.numbers) + len(self.texts)


def cells_of(line: bytes, spans: Sequence[tuple[int, int]], start: int = 0) -> Cells | None:
    """The cells of a line, which has its numbers at `spans`, in order, and a prefix up to `start`.

    None for lines in which more or fewer digits of a number could change what the line says, and for those whose
    numbers do not stand alone between separators.
    """
    if not may_vary(line, spans, start) or not all(_PLAIN.fullmatch(line, *s) for s in spans):
        return None
    beside = {*(line[a - 1: a] for a, _ in spans if a), *(line[b: b + 1] for _, b in spans)} - {b""}
    if any(map(_NO_SEPARATOR.match, beside)):
        return None
    delimiter = b" " if b" " in beside or not beside else min(beside)
    return _laid_out(line, spans, start, delimiter, b"".join(sorted({*beside, delimiter})))


def may_vary(line: bytes, spans: Sequence[tuple[int, int]], start: int = 0) -> bool:
    """Whether more or fewer digits of the numbers at `spans` leave a line what it is: none stands next to its prefix,
    and none makes one number with the next."""
    if not spans or not line.isascii() or _DIGIT.match(line[start:]):
        return False
    gaps = [line[a:b] for a, b in zip([start, *(e for _, e in spans)], [*(s for s, _ in spans), len(line)],
                                      strict=True)]
    between = [g.strip(b" ") for g in gaps[1:-1]]
    return not (any(map(_DIGIT.search, gaps)) or any(b in _JOINED for b in between)
                or (b"/", b"/") in pairwise(between))


def _laid_out(line: bytes, spans: Sequence[tuple[int, int]], start: int, delimiter: bytes, separators: bytes
              ) -> Cells | None:
    at, skipped, numbers, texts = 0, 0, {}, []
    for i, cell in enumerate(line.translate(_table(separators, delimiter)).split(delimiter)):
        span, at = (at, at + len(cell)), at + len(cell) + 1
        if span[0] < start:
            if span[1] > start or i != skipped:
                return None
            skipped += 1
        elif span in spans:
            numbers[span] = i
        else:
            texts.append((i, cell.decode()))
    if len(numbers) < len(spans) or skipped + len(numbers) + len(texts) > MOST_CELLS:
        return None
    prefix = line[:start].translate(DIGITS_AS_ZEROS)
    return Cells(delimiter, separators, prefix, skipped, tuple(numbers[s] for s in spans), tuple(texts))


@lru_cache(maxsize=256)
def _table(separators: bytes, delimiter: bytes) -> bytes:
    return bytes.maketrans(separators, delimiter * len(separators))


def with_prefix(block: Block, places: Ints, prefix: bytes) -> NDArray[np.bool_]:
    """Which of the lines begin so, digits aside; all of them are at least as long."""
    if not prefix:
        return np.ones(len(places), bool)
    found = cut_out(block.data, block.starts[places], len(prefix)).tobytes().translate(DIGITS_AS_ZEROS)
    if found == prefix * len(places):
        return np.ones(len(places), bool)
    rows = np.frombuffer(found, np.uint8).reshape(len(places), -1)
    return np.asarray((rows == np.frombuffer(prefix, np.uint8)).all(axis=1))


def converted(block: Block, places: Ints, cells: Cells, strict: bool = False) -> list[Floats] | None:
    """The numbers of each line, a number of the line after the other; None where the lines are not all such rows.

    `strict`: as JSON writes numbers, without leading zeros and with digits on both sides of a point.
    """
    data = block.lines(places)
    if len(cells.separators) > 1:
        data = data.translate(_table(cells.separators, cells.delimiter))
    if strict and not _strict(data, cells.delimiter):
        return None
    table = _read(data, cells)
    if table is None or table.num_rows != len(places):
        return None
    columns = table.columns[: len(cells.numbers)]
    return None if any(c.null_count for c in columns) else [_floats(c) for c in columns]


def _strict(data: bytes, d: bytes) -> bool:
    """Whether no number begins or ends with a point or begins with a zero too many. `d`: what stands before each."""
    return all(_strict_part(np.frombuffer(data[a: a + _PART + 3], np.uint8), d[0]) for a in range(0, len(data), _PART))


def _strict_part(signs: NDArray[np.uint8], d: int) -> bool:
    edge, point, minus = (signs == d) | (signs == 10), signs == ord("."), signs == ord("-")
    if ((edge | minus)[:-1] & point[1:]).any() or (point[:-1] & (edge | (signs | 32 == ord("e")))[1:]).any():
        return False
    led = (signs == ord("0"))[:-1] & (signs - np.uint8(48) < 10)[1:]  # a zero before a digit
    return not ((edge[:-2] & led[1:]).any() or (edge[:-3] & minus[1:-2] & led[2:]).any())


def _read(data: bytes, cells: Cells) -> Any:
    import pyarrow
    from pyarrow import csv

    names = [str(i) for i in range(cells.width)]
    types = {names[i]: pyarrow.float64() for i in cells.numbers} | {names[i]: pyarrow.null() for i, _ in cells.texts}
    try:
        return csv.read_csv(
            pyarrow.py_buffer(data),
            read_options=csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
            parse_options=csv.ParseOptions(delimiter=cells.delimiter.decode(), quote_char=False,
                                           ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(include_columns=list(types), column_types=types, check_utf8=False,
                                               null_values=sorted({text for _, text in cells.texts}),
                                               decimal_point="."))
    except pyarrow.ArrowInvalid:
        return None


def _floats(column: Any) -> Floats:
    """The numbers of a column without gaps, from its buffers: pyarrow's own way imports pandas."""
    parts = [np.frombuffer(c.buffers()[1], np.float64)[c.offset: c.offset + len(c)] for c in column.chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def is_here() -> bool:
    """Whether pyarrow is installed."""
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True
