"""CSV and TSV: Lightning's `metrics.csv`, Keras' `CSVLogger`, exports of dashboards, whatever a script writes.

Found by a header whose columns are those of a log. Empty cells are absent values: rows of training and validation
interleave in many writers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from itertools import islice

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers import columns, rows_of_data
from traindx_tools.on_logs.readers.arrow_rows import ArrowRows
from traindx_tools.on_logs.readers.line_blocks import each_block
from traindx_tools.on_logs.readers.lines import WIDEST, LineStats, of_lost
from traindx_tools.on_logs.readers.numbers import has_decimal_commas, with_points
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.readers.written_cells import WrittenCells, has_quoted_commas, with_quoted_points
from traindx_tools.on_logs.run import Run, merge

_DELIMITERS = (",", "\t", ";", "|")
TIMES = 4
"""So many times as large as others are blocks of a table: what is done once a block and column is less of the time."""
_PAIR = re.compile(r"[A-Za-z]:[-+]?\d")
"""A name and its value in one cell, as boosters print them: "train-rmse:0.52"."""


def header_of(head: Head) -> tuple[str, list[str]] | None:
    """The delimiter and the column names, None where the first line is no header of a table."""
    lines = [line for line in head.lines[:50] if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 1:
        return None
    for delimiter in _DELIMITERS:
        names = _cells(lines[0], delimiter)
        rows = [_cells(row, delimiter) for row in lines[1:20]]
        if len(names) >= 2 and _is_header(names) and _rows_fit(rows, len(names), strict=delimiter == "|"):
            return delimiter, names
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    if len(line) > WIDEST:
        return []
    try:
        return [c.strip() for c in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _is_header(names: list[str]) -> bool:
    named = [n for n in names if n]
    return len(named) >= len(names) - 1 and len(set(names)) == len(names) and not any(map(_is_value, named))


def _is_value(name: str) -> bool:
    """Whether a cell is a number or a text with values in it ("loss 3.25"), rather than a name."""
    return (columns.number(name) is not None or len(name) > 200 or ": " in name or _PAIR.search(name) is not None
            or any(c in name for c in "={}<>")
            or any(columns.number(word) is not None for word in name.split()[1:]))


def _rows_fit(rows: list[list[str]], width: int, strict: bool) -> bool:
    """Whether most rows have as many cells as the header, and, if `strict`, are mostly numbers."""
    filled = [cell for row in rows for cell in row if cell]
    numeric = sum(columns.number(cell) is not None for cell in filled) >= 0.5 * len(filled)
    return sum(len(row) == width for row in rows) >= 0.5 * len(rows) and (numeric or not strict)


def sniff(head: Head) -> float:
    """Sure where the first line is a header of metrics and the rows below have as many cells."""
    if is_binary(head.data):
        return 0.0
    found = header_of(head)
    if found is None:
        return 0.0
    return 0.8 if columns.looks_like_metrics(found[1]) else 0.3


def read(source: Source, trusted: frozenset[str] = frozenset()) -> Run:
    """Reads a table of metrics; one with a `trusted` column is a log in any case. Raises OSError."""
    from traindx_tools.on_logs.readers.reader import head_of

    head = head_of(source)
    found = header_of(head)
    if found is None or not (columns.looks_like_metrics(found[1]) or trusted.intersection(found[1])):
        return Run(artifacts=(Artifact(source.name, "data_table", note="no step, epoch or metric among its columns: "
                                       "taken for data and not read"),))
    said = trusted | rows_of_data.said(source)
    if not said.intersection(found[1]) and rows_of_data.are_data(found[1], _rows(head, *found)):
        return Run(artifacts=(Artifact(source.name, "data_table", note=rows_of_data.NOTE),))
    table = _Table(source.name, found[0])
    table.reading.within = columns.starting_over(found[1], _rows(head, *found))
    points = _points(head, found[0])
    if points is not None:
        for number, written in lines_of(source, table.stats):
            table.line(number, points(written))
    else:
        rows = ArrowRows(table.reading, found[0], lambda: table.names, table.line)
        each_block(source, rows.take, table.line, table.stats, ahead=rows.ahead, recorder=table.reading.recorder,
                   times=TIMES, longest=WIDEST)
    return table.run()


def _rows(head: Head, delimiter: str, names: list[str]) -> Iterator[list[str]]:
    """The whole rows of the head, below the header."""
    points = _points(head, delimiter) or (lambda line: line)
    for line in islice(head.lines, 1, rows_of_data.MOST):
        if len(row := _cells(points(line), delimiter)) == len(names) and not line.startswith("#"):
            yield row


def _points(head: Head, delimiter: str) -> Callable[[str], str] | None:
    """What writes decimal points for the decimal commas of a line; None where its numbers have points."""
    if delimiter != ",":
        return with_points if has_decimal_commas(head.text) else None
    return with_quoted_points if has_quoted_commas(head.text) else None


class _Table:
    """The lines of a table, one after the other."""

    def __init__(self, source: str, delimiter: str) -> None:
        self.source, self.delimiter = source, delimiter
        self.written = WrittenCells()
        self.reading = columns.RowReading(source, written=self.written)
        self.names: tuple[str, ...] = ()
        self.damaged, self.stats = 0, LineStats()

    def line(self, number: int, line: str) -> None:
        """Reads one line: the header, another header, or a row."""
        if line.lstrip().startswith("#"):
            return
        cells = _cells(line, self.delimiter) if '"' in line else [c.strip() for c in line.split(self.delimiter)]
        if not self.names or (cells and cells[0] == self.names[0] and _is_header(cells)):
            self.names = tuple(cells)  # a writer that appends after a restart repeats or changes its header
        elif len(cells) == len(self.names):
            self.reading.row(number, self.names, cells)
        elif any(cells):
            self.damaged += 1

    def run(self) -> Run:
        """What the rows tell."""
        self.reading.recorder.even_out()
        damaged = of_lost(self.damaged, self.stats)
        counts = self.reading.recorder.counts()
        unread = self.written.remark({key.original: n for key, n in counts.items()})
        told = self.reading.run()
        said = (damaged, self.reading.recorder.remark, self.reading.twins, unread, self.reading.of_steps)
        note = "; ".join(filter(None, said))
        return merge([told, Run(artifacts=(Artifact(
            self.source, _format(self.names, self.delimiter), rows=self.reading.recorder.read, note=note,
            unread=unread),))])


def _format(names: tuple[str, ...], delimiter: str) -> str:
    if delimiter == "\t":
        return "tsv"
    if "step" in names and "epoch" in names and list(names) == sorted(names):
        return "lightning_csv"
    return "csv"


READER = Reader("csv", sniff, read)
