"""Rows of a CSV file, a block at a time by pyarrow where it is installed.

A block is taken so only where each of its lines has as many cells as the header and each cell that counts is empty or a
number as pyarrow writes it; any other block is read line by line. Both ways give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_logs.readers.columns import Mask, RowReading
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.run import Floats

_NOT_PLAIN = (b'"', b"#", b"\n\n")
MOST_REFUSED = 3
"""Blocks that pyarrow did not take after which it is asked no more."""


@dataclass
class ArrowRows:
    """Takes blocks for a `RowReading`. `names`: the columns, () before the header was read; `line` reads one line."""

    reading: RowReading
    delimiter: str
    names: Callable[[], Sequence[str]]
    line: Callable[[int, str], None]
    refused: int = 0
    _csv: Any = field(default_factory=lambda: _pyarrow())

    def take(self, block: Block) -> None:
        """Reads a block of lines."""
        start = 0
        while not self.names() and start < len(block):
            self._one(block, start)
            start += 1
        if start < len(block) and not self._taken(block, start):
            for at in range(start, len(block)):
                self._one(block, at)

    def _one(self, block: Block, at: int) -> None:
        if block.ends[at] > block.starts[at]:
            self.line(block.first + at, block.text(at))

    def _taken(self, block: Block, start: int) -> bool:
        names = self.names()
        wanted = self.reading.takes(names) if self._csv is not None and self.refused < MOST_REFUSED else None
        data = memoryview(block.data)[int(block.starts[start]):]
        if not wanted or any(sign in block.data for sign in _NOT_PLAIN) or block.ends[start] == block.starts[start]:
            return False
        table = self._read(data, len(names), wanted)
        if table is None or table.num_rows != len(block) - start:
            self.refused += 1
            return False
        lines = np.arange(block.first + start, block.first + len(block), dtype=np.int64)
        self.reading.rows(lines, names, {i: _numbers(c) for i, c in zip(wanted, table.columns, strict=True)})
        return True

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
