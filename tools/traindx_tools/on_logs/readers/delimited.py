"""CSV and TSV: Lightning's `metrics.csv`, Keras' `CSVLogger`, exports of dashboards, whatever a script writes.

Found by a header whose columns are those of a log. Empty cells are absent values: rows of training and validation
interleave in many writers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from traindx_tools.on_logs.artifacts import Source, is_binary
from traindx_tools.on_logs.readers import columns
from traindx_tools.on_logs.readers.lines import LineStats
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.run import Artifact, Run, merge

_DELIMITERS = (",", "\t", ";", "|")


def header_of(head: Head) -> tuple[str, list[str]] | None:
    """The delimiter and the column names, None where the first line is no header of a table."""
    lines = [line for line in head.lines[:50] if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 1:
        return None
    for delimiter in _DELIMITERS:
        names = _cells(lines[0], delimiter)
        if len(names) >= 2 and _is_header(names) and _rows_fit(lines[1:20], delimiter, len(names)):
            return delimiter, names
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    if len(line) > 60_000:
        return []
    try:
        return [c.strip() for c in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _is_header(names: list[str]) -> bool:
    named = [n for n in names if n]
    return len(named) >= len(names) - 1 and all(columns.number(n) is None for n in named) and all(
        len(n) <= 200 and ": " not in n and "{" not in n for n in named) and len(set(names)) == len(names)


def _rows_fit(rows: list[str], delimiter: str, width: int) -> bool:
    counts = [len(_cells(row, delimiter)) for row in rows]
    return sum(c == width for c in counts) >= 0.7 * len(counts)


def sniff(head: Head) -> float:
    """Sure where the first line is a header of metrics and the rows below have as many cells."""
    if is_binary(head.data):
        return 0.0
    found = header_of(head)
    if found is None:
        return 0.0
    return 0.8 if columns.looks_like_metrics(found[1]) else 0.3


def read(source: Source) -> Run:
    """Reads a table of metrics. Raises OSError."""
    from traindx_tools.on_logs.readers.reader import head_of

    found = header_of(head_of(source))
    if found is None or not columns.looks_like_metrics(found[1]):
        return Run(artifacts=(Artifact(source.name, "data_table", note="no step, epoch or metric among its columns: "
                                       "taken for data and not read"),))
    delimiter, _ = found
    reading, stats, damaged = columns.RowReading(source.name), LineStats(), 0
    names: list[str] = []
    for number, cells in _table(source, delimiter, stats):
        if not names or (cells and cells[0] == names[0] and _is_header(cells)):
            names = cells  # a writer that appends after a restart repeats or changes its header
        elif len(cells) == len(names):
            reading.row(number, dict(zip(names, cells)))
        elif any(cells):
            damaged += 1
    note = f"{damaged} damaged lines skipped" if damaged else ""
    return merge([reading.run(), Run(artifacts=(Artifact(source.name, _format(names, delimiter),
                                                         rows=len(reading.recorder), note=note),))])


def _table(source: Source, delimiter: str, stats: LineStats) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines_of(source, stats):
        if not line.lstrip().startswith("#"):
            yield number, _cells(line, delimiter) if '"' in line else [c.strip() for c in line.split(delimiter)]


def _format(names: list[str], delimiter: str) -> str:
    if delimiter == "\t":
        return "tsv"
    if "step" in names and "epoch" in names and names == sorted(names):
        return "lightning_csv"
    return "csv"


READER = Reader("csv", sniff, read)
