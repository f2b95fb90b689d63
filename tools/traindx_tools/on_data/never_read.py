"""Data files that lie beside those that a run read, and were not read by it (D121)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Finding
from traindx_tools.live.files_read import FileRead
from traindx_tools.on_data.rules import d121_never_read
from traindx_tools.on_data.table import DataSet


def never_read(sets: Sequence[DataSet], read: Sequence[FileRead]) -> Iterator[Finding]:
    """A finding for each split of which the run opened some files and not others."""
    if not read:
        return
    opened = {os.path.realpath(r.path) for r in read}
    for data in sets:
        for split, shards in data.splits.items():
            files = {os.path.realpath(c.file): s for s in shards for c in s.columns.values()}
            left = [s for f, s in files.items() if f not in opened]
            yield from d121_never_read.check_files(split, len(files), list(dict.fromkeys(left)))
