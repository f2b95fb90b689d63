"""JSON lines, and a JSON file that is one list of records."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Damage
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.geojson import is_collection, records_of
from traindx_tools.on_data.readers.records import columns_of, flattened
from traindx_tools.on_data.readers.sampled_lines import MOST_LINE, sampled_lines
from traindx_tools.on_data.shard import Shard

FEWEST = 2
"""Records below which a file is no data set."""


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
    """A JSON file that is a list of records, or an object with one such list. Raises UnreadableInput."""
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
    if is_collection(data):
        data = records_of(data)
    lists = (
        [data]
        if isinstance(data, list)
        else [v for v in data.values() if isinstance(v, list)]
        if isinstance(data, dict)
        else []
    )
    rows = next((v for v in lists if len(v) >= FEWEST and all(isinstance(r, dict) for r in v)), None)
    if rows is None:
        raise UnreadableInput("no list of records")
    records = [flattened(r) for r in rows[: bounds.rows]]
    return (Shard(name, "json", columns_of(records, name), len(records), len(rows)),)


def _is_index(data: Any) -> bool:
    """Whether it lists the shards of MosaicML Streaming, with their fields and encodings."""
    shards = data.get("shards") if isinstance(data, dict) else None
    return isinstance(shards, list) and bool(shards) and all(
        isinstance(s, dict) and "column_encodings" in s and "raw_data" in s for s in shards)
