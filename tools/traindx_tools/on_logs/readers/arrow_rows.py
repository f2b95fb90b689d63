"""Rows of a CSV file, a block at a time by pyarrow where it is installed.

A block that is rows of numbers alone is taken at once (`number_rows.py`). Where the delimiters of another one stand is
two comparisons of all its bytes; cells between them are converted where they stand. Lines are taken so only where they
have as many cells as the header and each cell that counts is empty or a number as pyarrow writes it; all others are
read one by one, in their place. All ways give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_logs.readers.columns import Mask, RowReading
from traindx_tools.on_logs.readers.line_blocks import Block, Cuts
from traindx_tools.on_logs.readers.number_rows import NumberRows, number_rows
from traindx_tools.on_logs.readers.spans import cast_cells
from traindx_tools.on_logs.run import Floats, Ints

_NOT_PLAIN = (b'"', b"#")
MOST_REFUSED = 3
"""Blocks of which pyarrow did not take a line after which it is asked no more."""
FEWEST = 64
"""Lines below which finding the odd one costs more than reading each."""
MOST_ODD = 0.05
"""Share of lines with more or fewer cells up to which the others of a block are taken together."""
_Cells = dict[int, tuple[Floats, Mask]]


@dataclass(frozen=True)
class _Looked:
    """What is known of a block before its turn, for columns of these names."""

    names: Sequence[str]
    together: NumberRows | None
    """All lines with an end, where each is a row of numbers."""
    cuts: Cuts | None = None
    """None as well where its lines are to be read one by one."""
    odd: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The lines with more or fewer cells."""
    cells: _Cells | None = None
    """The numbers of all lines with an end, where there are no odd ones and each is such a row."""


@dataclass
class ArrowRows:
    """Takes blocks for a `RowReading`. `names`: the columns, () before the header was read; `line` reads one line."""

    reading: RowReading
    delimiter: str
    names: Callable[[], Sequence[str]]
    line: Callable[[int, str], None]
    refused: int = 0
    mixed: int = 0
    """Blocks, one behind the other, that were not rows of numbers alone: after several it is not tried again."""
    _csv: Any = field(default_factory=lambda: _pyarrow())
    _columns: tuple[Sequence[str], Sequence[int] | None] = ((), None)
    """Those of the last block, and which of them are wanted."""

    def ahead(self, block: Block) -> None:
        """Works out what does not depend on the blocks before it, as long as the columns stay: in any thread."""
        names, wanted = self._columns
        if wanted:
            block.worked = self._looked(block, names, wanted, 0)

    def take(self, block: Block) -> None:
        """Reads a block of lines."""
        start = 0
        while not self.names() and start < len(block):
            self._one(block, start)
            start += 1
        names = self.names()
        wanted = self.reading.takes(names) if self._csv is not None and self.refused < MOST_REFUSED else None
        self._columns = (names, wanted)
        known = block.worked if isinstance(block.worked, _Looked) and block.worked.names == names else None
        looked = known or (self._looked(block, names, wanted, start) if wanted else None)
        if looked is not None and looked.together is not None:
            self._all(block, names, looked.together)
        elif not wanted or looked is None or looked.cuts is None:
            self._each(block, start, len(block))
        else:
            self._parts(block, names, wanted, looked, looked.cuts, start)

    def _all(self, block: Block, names: Sequence[str], told: NumberRows) -> None:
        count = len(told.ends)
        self.reading.rows(range(block.first, block.first + count), names, told.cells)
        self._each(block, count, len(block))

    def _parts(self, block: Block, names: Sequence[str], wanted: Sequence[int], looked: _Looked, cuts: Cuts, start: int
               ) -> None:
        """Takes lines from one on: what stands between two odd ones together."""
        taken, behind = 0, start
        whole = len(cuts.line)  # the last line may lack its end
        for at in (*looked.odd.tolist(), whole):
            taken += self._together(block, cuts, start, at, names, wanted, looked.cells)
            self._each(block, at, min(at + 1, whole))
            start = at + 1
        self._each(block, max(whole, behind), len(block))
        self.refused += not taken

    def _looked(self, block: Block, names: Sequence[str], wanted: Sequence[int], start: int) -> _Looked:
        """`start`: the lines before this one were read."""
        delimiter = self.delimiter.encode()
        order = delimiter * (len(names) - 1) + b"\n"
        if not start and self.mixed < MOST_REFUSED:
            told = number_rows(block.data, order, wanted)
            self.mixed = 0 if told is not None else self.mixed + 1
            if told is not None:
                block.is_plain_with(told.ends)
                return _Looked(names, told)
        if not block.plain or any(sign in block.data for sign in _NOT_PLAIN):
            return _Looked(names, None)
        cuts = block.cut_at(b"\n" + delimiter, order)
        odd, count = _odd(cuts, start, len(names)), len(cuts.line)
        if len(odd) > MOST_ODD * len(block):
            return _Looked(names, None)
        alike = not len(odd) and count - start >= FEWEST
        return _Looked(names, None, cuts, odd,
                       self._cells(block, cuts, start, count, len(names), wanted) if alike else None)

    def _each(self, block: Block, start: int, end: int) -> None:
        for at in range(start, end):
            self._one(block, at)

    def _one(self, block: Block, at: int) -> None:
        if block.ends[at] > block.starts[at]:
            self.line(block.first + at, block.text(at))

    def _together(self, block: Block, cuts: Cuts, start: int, end: int, names: Sequence[str], wanted: Sequence[int],
                  cells: _Cells | None = None) -> int:
        """Takes lines with as many cells as the header: all at once, or by halves where one of them is odd; how many
        were not read one by one. `cells`: their numbers, where they are known."""
        if end - start < FEWEST:
            self._each(block, start, end)
            return 0
        cells = cells or self._cells(block, cuts, start, end, len(names), wanted)
        if cells is None:
            middle = (start + end) // 2
            return (self._together(block, cuts, start, middle, names, wanted)
                    + self._together(block, cuts, middle, end, names, wanted))
        self.reading.rows(range(block.first + start, block.first + end), names, cells)
        return end - start

    def _cells(self, block: Block, cuts: Cuts, start: int, end: int, width: int, wanted: Sequence[int]
               ) -> _Cells | None:
        """The numbers in the columns that are wanted, by column; None where a cell is none."""
        first = int(cuts.line[start]) + 1 - width
        ends = cuts.at[first: int(cuts.line[end - 1]) + 1]
        told = cast_cells(block.data, int(block.starts[start]), ends, width, wanted)
        if told is not None:
            return dict(zip(wanted, told, strict=True))
        table = self._read(memoryview(block.data)[int(block.starts[start]):int(block.ends[end - 1]) + 1], width, wanted)
        if table is None or table.num_rows != end - start:
            return None
        return {i: _numbers(c) for i, c in zip(wanted, table.columns, strict=True)}

    def _read(self, data: memoryview, width: int, wanted: Sequence[int]) -> Any:
        import pyarrow

        names = [str(i) for i in range(width)]
        try:
            return self._csv.read_csv(
                pyarrow.py_buffer(data),
                read_options=self._csv.ReadOptions(use_threads=False, column_names=names, block_size=1 << 22),
                parse_options=self._csv.ParseOptions(delimiter=self.delimiter, quote_char=False,
                                                     ignore_empty_lines=False),
                convert_options=self._csv.ConvertOptions(
                    include_columns=[names[i] for i in wanted], null_values=[""], check_utf8=False,
                    column_types={names[i]: pyarrow.float64() for i in wanted}))
        except pyarrow.ArrowInvalid:
            return None


def _odd(cuts: Cuts, start: int, width: int) -> Ints:
    """The lines from one on that have more or fewer cells."""
    if cuts.order is not None and len(cuts.order) == width:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.diff(cuts.line, prepend=-1)[start:] != width) + start


def _numbers(column: Any) -> tuple[Floats, Mask]:
    """The numbers of a column and where there is one, from its buffers: pyarrow's own way imports pandas."""
    values, there = [], []
    for chunk in column.chunks:
        part = slice(chunk.offset, chunk.offset + len(chunk))
        valid, data = chunk.buffers()
        values.append(np.frombuffer(data, np.float64)[part])
        there.append(np.ones(len(chunk), bool) if valid is None else
                     np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[part].astype(bool))
    numbers, known = np.concatenate(values), np.concatenate(there)
    numbers[~known] = 0.0
    return numbers, known


def _pyarrow() -> Any:
    try:
        import pyarrow.csv as found
    except ImportError:
        return None
    return found
