"""Files that say by their numbers which rows belong to which split: `{"train": [0, 2, ...], "val": [1, ...]}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.names import split_of
from traindx_tools.on_data.split_columns import FEWEST, rows_taken
from traindx_tools.on_data.table import DataSet

MOST_BYTES = 32 * 2**20
COVERED = 0.5
"""Share of a file's rows that the numbers name, at least: else they may be those of another file."""


@dataclass(frozen=True, eq=False)
class SplitFile:
    """One file. `rows`: int64 numbers of rows, from 0, by split ("train", "validation", "test")."""

    path: str
    rows: Mapping[str, Array]

    @property
    def most(self) -> int:
        """The largest number."""
        return max(int(r.max()) for r in self.rows.values())

    @property
    def count(self) -> int:
        """Numbers in all."""
        return sum(len(r) for r in self.rows.values())


def split_files_of(paths: Iterable[str | Path]) -> tuple[SplitFile, ...]:
    """Those among the JSON files; what is none, too large or damaged is passed over."""
    return tuple(_found(Path(p) for p in paths))


def by_rows(data: DataSet, files: Sequence[SplitFile]) -> Iterator[DataSet]:
    """For each file of data whose rows such a file names a set of its splits."""
    for shard in data.shards:
        for file in files:
            whole = not shard.split and shard.numbers is None and shard.rows == shard.total
            if whole and file.most < shard.rows and file.count >= COVERED * shard.rows:
                parts = tuple(rows_taken(shard, rows, split) for split, rows in file.rows.items())
                yield DataSet(data.name, parts)


def _found(paths: Iterable[Path]) -> Iterator[SplitFile]:
    for path in paths:
        if path.suffix != ".json":
            continue
        try:
            told = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size <= MOST_BYTES else None
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(told, dict) and (rows := _rows(told)):
            yield SplitFile(str(path), rows)


def _rows(told: Mapping[str, Any]) -> dict[str, Array]:
    """The numbers by split; nothing where a number stands in two, or anything else stands in a list."""
    found: dict[str, Array] = {}
    for key, value in told.items():
        split = split_of(str(key))
        if not split or not isinstance(value, list) or len(value) < FEWEST or split in found:
            continue
        if not all(type(v) is int and 0 <= v < 2**53 for v in value):
            return {}
        found[split] = np.array(value, np.int64)
    every = np.concatenate(list(found.values())) if "train" in found and len(found) > 1 else np.zeros(0, np.int64)
    return found if len(every) and len(np.unique(every)) == len(every) else {}
