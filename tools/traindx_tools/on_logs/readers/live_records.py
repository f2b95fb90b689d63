"""The records of a live instrument: one rank's JSON lines, its summary and the runner's `run.json`.

The metrics of rank 0 become series (ranks see different data, so that their losses differ by nature); findings are read
by whoever examines the run, not here. A pass with tracing gives no series: it repeats the steps of the first one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from traindx_tools.artifact import Artifact
from traindx_tools.live.reading import is_live
from traindx_tools.live.settings import WATCH
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.recorder import Key, Recorder
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.parse import read_errors

FORMAT = "traindx_live"


def sniff(head: Head) -> float:
    """Certain where the first record says so."""
    return 1.0 if is_live(head.text) else 0.0


def read(source: Source) -> Run:
    """The series of a file of rank 0, none of others. Raises OSError."""
    recorder, rows = Recorder(source.name), 0
    errors: tuple[ErrorEvent, ...] = ()
    for number, record in _records(source):
        if record.get("kind") == "start":
            if record.get("mode") != WATCH or record.get("rank") != 0:
                break
        elif record.get("kind") == "metrics":
            rows += 1
            recorder.add(number, _values(record), step=_number(record.get("step")))
        elif record.get("kind") == "end" and isinstance(record.get("trace"), str):
            errors = read_errors(((number, line) for line in record["trace"].splitlines()), source.name)
    return Run(series=recorder.series(), errors=errors, artifacts=(Artifact(source.name, FORMAT, rows=rows),))


def _records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines_of(source):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield number, record


def _values(record: dict[str, Any]) -> list[tuple[Key, float]]:
    return [(Key(k, "train", None, k), _number(v)) for k, v in record.items() if k not in ("kind", "step")]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


READER = Reader(FORMAT, sniff, read)
