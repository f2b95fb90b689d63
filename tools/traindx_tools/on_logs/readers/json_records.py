"""JSON lines and JSON documents: one object a record, or one object that holds a list of records or of columns.

Nested objects become names with slashes. Python's `NaN` and `Infinity` are accepted, as are numbers in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers import columns, rows_of_data, text_log
from traindx_tools.on_logs.readers.epoch_rows import told_by_epoch
from traindx_tools.on_logs.readers.json_blocks import JsonRows, parse
from traindx_tools.on_logs.readers.line_blocks import Beside, each_block
from traindx_tools.on_logs.readers.lines import WIDEST, LineStats, of_lost
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.written_cells import WrittenCells
from traindx_tools.on_logs.run import Run, merge

MAX_DOCUMENT = 256 * 2**20
"""Bytes of a JSON document that is read as a whole; a longer one is refused."""
MAX_CONTAINERS = 4_000_000
"""Objects and lists of a document: each takes 60 to 300 bytes of memory, however short its text is."""
MAX_VALUES = 20_000_000
"""Values of a document. Of one that holds more, or more containers, the beginning is read."""
_DEPTH = 4
_FLAT = re.compile(r"\{[^{}]{2,20000}\}")
_OPENING = re.compile(r'\s*(?:\{\s*(?:"|\})|\[\s*(?:\{|\[|\]|-?\d))')


def flatten(record: dict[str, Any], prefix: str = "", depth: int = _DEPTH) -> dict[str, Any]:
    """Leaves by name; names of nested objects are joined with slashes."""
    if not prefix and not any(type(cell) is dict for cell in record.values()):
        return record
    flat: dict[str, Any] = {}
    for name, cell in record.items():
        if isinstance(cell, dict) and depth > 0:
            flat.update(flatten(cell, f"{prefix}{name}/", depth - 1))
        else:
            flat[f"{prefix}{name}" if not _places(name) else str(name)] = cell
    return flat


def _places(name: Any) -> bool:
    return columns.role(str(name)) in (columns.STEP, columns.EPOCH, columns.TIME)


def sniff_lines(head: Head) -> float:
    """Sure where most lines are JSON objects of metrics."""
    lines = [line for line in head.lines if line.strip()][:40]
    if is_binary(head.data) or not lines:
        return 0.0
    records = [r for r in map(parse, lines) if isinstance(r, dict)]
    if len(records) < 0.6 * len(lines):
        return 0.0
    is_log = [columns.looks_like_metrics(n for n, cell in flatten(r).items() if not isinstance(cell, list))
              for r in records]  # a line of columns is a document
    return 0.85 if sum(is_log) >= 0.3 * len(is_log) else 0.3


def read_lines(source: Source, trusted: frozenset[str] = frozenset(), beside: Beside | None = None) -> Run:
    """Reads JSON lines; records with one of the `trusted` names are a log whatever else they hold.

    `beside` is handed the same lines. Raises OSError.
    """
    written, damaged, stats = WrittenCells(texts=True), 0, LineStats()
    reading = columns.RowReading(source.name, tells_events=True, written=written, within=_starting_over(source))

    def one(number: int, line: str) -> None:
        nonlocal damaged
        record = parse(line)
        if isinstance(record, dict):
            flat = flatten(record)
            reading.row(number, tuple(flat), tuple(flat.values()))
        elif line.strip():
            damaged += 1

    each_block(source, JsonRows(reading, one).take, one, stats, beside=beside, recorder=reading.recorder,
               longest=WIDEST)
    damage = of_lost(damaged, stats)
    names = {k.original for k in reading.recorder.counts()}
    if not names and stats.cut:
        return Run(artifacts=(Artifact(source.name, "jsonl", note=damage),))
    if not columns.looks_like_metrics(names) and not _placed(reading) and not names & trusted:
        return Run(artifacts=(Artifact(source.name, "data_records", note="no step, epoch or metric in its records: "
                                       "taken for data and not read"),))
    if not names & (trusted | rows_of_data.said(source)) and _are_data(source):
        return Run(artifacts=(Artifact(source.name, "data_records", note=rows_of_data.NOTE),))
    reading.recorder.even_out()
    unread = written.remark({key.original: n for key, n in reading.recorder.counts().items()})
    told = reading.run()
    said = (damage, reading.recorder.remark, reading.twins, unread, reading.of_logger, reading.of_steps)
    note = "; ".join(filter(None, said))
    read = Run(artifacts=(Artifact(source.name, "jsonl", rows=reading.recorder.read, note=note, unread=unread),))
    return merge([told_by_epoch(told), read])


def _are_data(source: Source) -> bool:
    """Whether the first records are those of a data set; records of several kinds are none."""
    records = _first_records(source)
    names = tuple(records[0]) if records else ()
    return bool(names) and all(tuple(r) == names for r in records) and rows_of_data.are_data(
        names, (tuple(r.values()) for r in records))


def _first_records(source: Source) -> list[dict[str, Any]]:
    from traindx_tools.on_logs.readers.reader import head_of

    return [flatten(r) for line in head_of(source).lines if isinstance(r := parse(line), dict)]


def _starting_over(source: Source) -> frozenset[str]:
    """The counters that start over, by the first records."""
    records = _first_records(source)
    names = tuple(dict.fromkeys(n for r in records for n in r if columns.role(n) == columns.STEP))
    return columns.starting_over(names, [[r.get(n) for n in names] for r in records])


def _placed(reading: columns.RowReading) -> bool:
    return any((told := each.told()).size and (told == told).any()
               for each in (reading.recorder.step, reading.recorder.epoch))


def sniff_document(head: Head) -> float:
    """Whether the text begins as one JSON value over several lines."""
    if is_binary(head.data) or not _OPENING.match(head.text):
        return 0.0
    return 0.5 if not head.complete or parse(head.text) is not None else 0.0


def records_in(document: Any) -> Sequence[dict[str, Any]]:
    """The records of a document: a list of objects, such a list inside an object, or columns of equal length."""
    if isinstance(document, list):
        return [d for d in document if isinstance(d, dict)]
    if not isinstance(document, dict):
        return []
    nested = [records_in(v) for v in document.values() if isinstance(v, list)]
    longest = max(nested, key=len, default=[])
    return longest or _from_columns(document) or next(
        (r for r in (records_in(v) for v in document.values() if isinstance(v, dict)) if r), [])


class _Rows(Sequence[dict[str, Any]]):
    """Columns seen as records, each made when it is asked for: millions of dicts would not fit into memory."""

    def __init__(self, columns_of: Mapping[str, list[Any]]) -> None:
        self._columns, self._length = columns_of, max(map(len, columns_of.values()), default=0)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | Sequence[dict[str, Any]]:
        if isinstance(at, slice):
            return _Rows({k: v[at] for k, v in self._columns.items()})
        if not 0 <= at < self._length:
            raise IndexError(at)
        return {k: v[at] for k, v in self._columns.items() if at < len(v)}


def _from_columns(document: dict[str, Any]) -> Sequence[dict[str, Any]]:
    listed = {k: v for k, v in document.items() if isinstance(v, list) and v and _all_numbers(v)}
    return _Rows(listed) if listed and columns.looks_like_metrics(listed) else ()


def _all_numbers(cells: Iterable[Any]) -> bool:
    return all(columns.number(c) is not None for c in cells)


def salvage(text: str) -> list[dict[str, Any]]:
    """The flat objects in a damaged document, in order."""
    return [r for r in (parse(m.group()) for m in _FLAT.finditer(text)) if isinstance(r, dict) and r]


def _affordable(text: str) -> str:
    """The text as far as what it holds fits into memory; a short text can hold very many empty lists."""
    if len(text) <= MAX_CONTAINERS:
        return text
    share = min(1.0, MAX_CONTAINERS / max(1, text.count("{") + text.count("[")),
                MAX_VALUES / max(1, text.count(",")))
    return text if share == 1.0 else text[: int(len(text) * share)]


def load(source: Source) -> Any:
    """The document of a source; of a damaged one the list of objects that can be saved. Raises OSError."""
    with source.text() as stream:
        text = stream.read(MAX_DOCUMENT).decode("utf-8-sig", errors="replace")
        longer = bool(stream.read(1))
    affordable = _affordable(text)
    if longer or len(affordable) < len(text):
        source.read_in_part(f"too large: only its first {len(affordable):,} characters were read")
    document = parse(text) if len(affordable) == len(text) else None
    return salvage(affordable) if document is None else document


def rows(source: Source, records: Iterable[dict[str, Any]], form: str, note: str = "") -> Run:
    """A run from records whose line is their number, 1-based."""
    reading = columns.RowReading(source.name, tells_events=True, written=WrittenCells(texts=True))
    for number, record in enumerate(records, 1):
        flat = flatten(record)
        reading.row(number, tuple(flat), tuple(flat.values()))
    told, rows_read = reading.run(), reading.recorder.rows
    said = "; ".join(filter(None, (note, reading.twins, reading.of_logger, reading.of_steps)))
    return merge([told, Run(artifacts=(Artifact(source.name, form, rows=rows_read, note=said),))])


def read_document(source: Source) -> Run:
    """Reads a JSON document of metrics. Raises OSError."""
    document = load(source)
    if document == []:  # begins like JSON and is none
        return text_log.read(source)
    records = records_in(document)
    if not records or not any(columns.looks_like_metrics(flatten(r)) for r in records[:50]):
        return Run(artifacts=(Artifact(source.name, "json", note="no records of metrics in it"),))
    return rows(source, records, "json")


def _both(head: Head) -> float:
    return max(sniff_lines(head), sniff_document(head))


def _read(source: Source) -> Run:
    from traindx_tools.on_logs.readers.reader import head_of

    return read_lines(source) if by_lines(head_of(source)) else read_document(source)


def by_lines(head: Head) -> bool:
    """Whether a source of JSON is one of lines, and no document."""
    return sniff_lines(head) >= sniff_document(head)


READER = Reader("jsonl", _both, _read)
