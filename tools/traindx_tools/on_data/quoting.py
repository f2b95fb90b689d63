"""Files of records whose texts quote errors: source code, questions, tickets. They are data, and no log of a run.

A record of a log says when it was written, or how grave it is; in a file of records that all have the same fields, and
none of these, an error is a part of somebody's text.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.readers import format_of, read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.roles import LEVEL_WORDS, is_epoch, is_time, starts_as_moment
from traindx_tools.on_logs.reading import Reading

FEWEST = 20
"""Records."""
LONG = 20
"""Characters of a text that may quote something."""
LOOKED_AT = Bounds(rows=400, text=2**24)


def without_quoted(reading: Reading) -> Reading:
    """The same without errors of files that are records of data, and tell no metrics."""
    parts = []
    for source, part in zip(reading.sources, reading.parts, strict=True):
        quoted = part.errors and not part.series and source.local is not None and is_records(Path(source.local))
        parts.append(replace(part, errors=()) if quoted else part)
    return replace(reading, parts=tuple(parts))


def is_records(path: Path) -> bool:
    """Whether a file is JSON lines of records that all have the same fields, and none of them is a log's."""
    try:
        if format_of(path) != "json lines":
            return False
        shards = read_file(path, path.name, "json lines", LOOKED_AT)
    except (OSError, UnreadableInput):
        return False
    shard = shards[0] if len(shards) == 1 else None
    if shard is None or shard.rows < FEWEST or shard.damage or any(map(_of_a_log, shard.columns.values())):
        return False
    whole = [c for c in shard.columns.values() if c.rows == shard.rows and c.missing is None]
    return len(whole) >= 2 and any(c.kind == "text" and float(np.median(c.values)) >= LONG for c in whole)


def _of_a_log(column: Column) -> bool:
    """Whether a field says when a record was written, or how grave it is."""
    if is_time(column.name):
        return True
    if column.kind == "number":
        return not column.row_shape and column.values.dtype.kind in "iuf" and is_epoch(column.values)
    if column.kind != "text":
        return False
    some = [t.strip() for t in column.texts[:FEWEST] if t.strip()]
    return bool(some) and (all(map(starts_as_moment, some)) or all(t.casefold() in LEVEL_WORDS for t in some))
