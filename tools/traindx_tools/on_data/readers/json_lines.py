"""JSON lines, and JSON files of lists of records, or of records by name."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Damage
from traindx_tools.on_data.names import split_of
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.geojson import is_collection, records_of
from traindx_tools.on_data.readers.records import columns_of, flattened
from traindx_tools.on_data.readers.sampled_lines import MOST_LINE, sampled_lines
from traindx_tools.on_data.shard import Shard

FEWEST = 2
"""Records below which a file is no data set."""
FEWEST_MORE, MOST_LISTS = 20, 8
"""Records of a list beside the first one that is no list of names, and lists that are read."""
FEWEST_NAMED, ALIKE, NAMED = 20, 0.8, "key"
"""Objects by name that are records, the share of them that have the same keys, and what their names are called."""

_DESCRIPTION = frozenset({"builder_name", "citation", "dataset_name", "download_size", "license", "splits"})
"""Fields of the description that Hugging Face keeps beside the features of a data set."""
NO_RECORDS = "no list of records"
"""Of a JSON file that holds something else: settings, statistics, names."""


def read_json_lines(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The records of the lines. A line that does not parse is damage. Raises UnreadableInput."""
    if bounds.share:
        return (_sampled(path, name, bounds),)
    records: list[dict[str, Any]] = []
    damage: list[Damage] = []
    notes: list[str] = []
    with opened(path) as stream:
        for number, line in enumerate(_lines(stream, bounds, notes)):
            if len(records) >= bounds.rows or bounds.over:
                notes.append(f"only the first {len(records):,} records were read")
                break
            if line.strip():
                _take(line, number, records, damage)
    if len(records) < FEWEST:
        raise UnreadableInput("no JSON lines" if not damage else f"{damage[0].what} in line {(damage[0].row or 0) + 1}")
    return (
        Shard(
            name,
            "json lines",
            columns_of(records, name),
            len(records),
            len(records),
            damage=tuple(damage),
            notes=tuple(notes),
        ),
    )


def _sampled(path: Path, name: str, bounds: Bounds) -> Shard:
    """Blocks of the lines of a large file. Raises UnreadableInput."""
    records: list[dict[str, Any]] = []
    damage: list[Damage] = []
    numbers: list[int] = []
    with path.open("rb") as stream:
        lines = sampled_lines(stream, path.stat().st_size, bounds)
    for number, line in lines.kept:
        before = len(records)
        if line.strip():
            _take(line, number, records, damage)
        numbers += [number] * (len(records) - before)
    if len(records) < FEWEST:
        raise UnreadableInput("no JSON lines" if not damage else f"{damage[0].what} in line {(damage[0].row or 0) + 1}")
    shard = Shard(name, "json lines", columns_of(records, name), len(records), len(records), damage=tuple(damage))
    seen = lines.seen()
    whole = "all lines" if lines.whole else f"the first {lines.rows:,} lines (the time was used up)"
    note = (f"{len(records):,} of {lines.rows:,} lines were parsed, in blocks over the file; {whole} were looked at "
            "for damage, NaN, infinity and copies of whole lines")
    return replace(shard, total=lines.rows, numbers=np.array(numbers, np.int64), whole=seen, notes=(note,))


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked where it is gzip."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


def _lines(stream: IO[bytes], bounds: Bounds, notes: list[str]) -> Iterator[bytes]:
    left = bounds.text
    while True:
        try:
            line = stream.readline(MOST_LINE)
        except (OSError, EOFError, zlib.error):
            yield b'{"the packed stream ends early'
            return
        if not line:
            return
        if len(line) >= MOST_LINE:
            raise UnreadableInput(f"refused: a line is longer than {MOST_LINE:,} bytes")
        left -= len(line)
        if left < 0:
            notes.append(f"only the first {bounds.text:,} bytes were read")
            return
        yield line


def _take(line: bytes, number: int, records: list[dict[str, Any]], damage: list[Damage]) -> None:
    try:
        record = json.loads(line)
    except RecursionError:
        raise UnreadableInput(f"refused: line {number + 1} is nested too deeply") from None
    except ValueError:
        damage.append(Damage("a line is no JSON", row=number))
        return
    if isinstance(record, dict):
        records.append(flattened(record))
    elif isinstance(record, list):
        records.append({f"c{i}": v for i, v in enumerate(record[:1024])})
    else:
        damage.append(Damage("a line is no record", row=number))


def read_json(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """A JSON file that is a list of records, or an object with such lists or with records by name.

    Raises UnreadableInput.
    """
    if path.stat().st_size > bounds.text:
        raise UnreadableInput(f"larger than {bounds.text:,} bytes: JSON is read as a whole, make it JSON lines")
    try:
        data = json.loads(path.read_bytes())
    except RecursionError:
        raise UnreadableInput("refused: it is nested too deeply") from None
    except ValueError as error:
        raise UnreadableInput(f"no JSON ({str(error)[:80]})") from None
    if _is_index(data):
        raise UnreadableInput("the index of MDS shards, whose own heads are read")
    if isinstance(data, dict) and {"_data_files", "_fingerprint"} <= data.keys():
        raise UnreadableInput("the record of a saved data set, whose arrow files are read")
    if isinstance(data, dict) and "features" in data and data.keys() & _DESCRIPTION:
        raise UnreadableInput("the description of a data set, whose own files are read")
    if is_collection(data):
        data = records_of(data)
    found = _tables(data)
    if not found:
        raise UnreadableInput(NO_RECORDS)
    return tuple(_table(key, rows, name, bounds, first=not i) for i, (key, rows) in enumerate(found))


def _tables(data: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """The lists of records of a JSON value by their keys; objects by name are one such list."""
    if isinstance(data, list):
        return [("", data)] if _are_records(data) else []
    if not isinstance(data, dict):
        return []
    lists = [(k, v) for k, v in data.items() if isinstance(v, list) and _are_records(v)]
    if lists:
        return lists[:1] + [(k, v) for k, v in lists[1:] if len(v) >= FEWEST_MORE][: MOST_LISTS - 1]
    rows = list(data.values())
    if len(rows) >= FEWEST_NAMED and _are_records(rows) and _alike(rows):
        return [("", [{NAMED: k, **v} for k, v in data.items()])]
    return []


def _are_records(rows: list[Any]) -> bool:
    return len(rows) >= FEWEST and all(isinstance(r, dict) for r in rows)


def _alike(rows: list[dict[str, Any]]) -> bool:
    """Whether nearly all of the objects have the keys of most: they are records, and not parts of one."""
    counts = Counter(frozenset(r) for r in rows)
    (usual, times), = counts.most_common(1)
    return bool(usual) and times >= ALIKE * len(rows)


def _table(key: str, rows: list[dict[str, Any]], name: str, bounds: Bounds, *, first: bool) -> Shard:
    """A list of records: of its split where its key says one, else under the key from the second list on."""
    records = [flattened(r) for r in rows[: bounds.rows]]
    split = split_of(key)
    told = name if first or split else f"{name}:{key}"
    return Shard(told, "json", columns_of(records, name), len(records), len(rows), split=split)


def _is_index(data: Any) -> bool:
    """Whether it lists the shards of MosaicML Streaming, with their fields and encodings."""
    shards = data.get("shards") if isinstance(data, dict) else None
    return isinstance(shards, list) and bool(shards) and all(
        isinstance(s, dict) and "column_encodings" in s and "raw_data" in s for s in shards)
