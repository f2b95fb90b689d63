"""Files that hold one group of arrays for each station, patient or demonstration: each group as a file of its own.

`stations/GR10/waveform` and `stations/GR10/picks` beside the same of eleven other stations are one table, cut by
station.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from traindx_tools.on_data.column import Column
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

FEWEST = 4
"""Groups of a file."""
FEWEST_FIELDS = 2
FEWEST_ROWS = 20
MOST_GROUPS = 400
_NUMBERS = re.compile(r"\d+")


def unfolded(sets: Sequence[DataSet]) -> Iterator[DataSet]:
    """A set of its own for each file of groups."""
    for data in sets:
        for shard in data.shards:
            groups = _groups(shard)
            if groups:
                yield DataSet(f"{data.name} by group", tuple(
                    replace(shard, name=f"{shard.name}/{name}", columns=columns, left_out={}, beside={}, raw={},
                            rows=rows, total=rows)
                    for name, columns in groups.items() for rows in [next(iter(columns.values())).rows]))


def _groups(shard: Shard) -> dict[str, dict[str, Column]]:
    """The fields of each group by the number in its name; {} where most groups do not hold the same fields."""
    if shard.format not in ("hdf5", "npz") or shard.numbers is not None or shard.left_out:
        return {}
    best: dict[str, dict[str, Column]] = {}
    for at in range(3):
        found: dict[str, dict[str, Column]] = {}
        for name, column in shard.columns.items():
            numbers = list(_NUMBERS.finditer(name))
            if at < len(numbers) and numbers[at].end() < len(name):
                group, field = name[:numbers[at].end()], name[numbers[at].end():].strip("_./-")
                if field:
                    found.setdefault(group, {})[field] = replace(column, name=field)
        if _alike(found) and len(found) > len(best):
            best = found
    return best


def _alike(found: dict[str, dict[str, Column]]) -> bool:
    """Whether all groups hold the same fields, two or more, of as many rows each."""
    if not FEWEST <= len(found) <= MOST_GROUPS:
        return False
    forms = {tuple(sorted((n, c.kind, c.row_shape) for n, c in columns.items())) for columns in found.values()}
    rows = [{c.rows for c in columns.values()} for columns in found.values()]
    return len(forms) == 1 and len(next(iter(forms))) >= FEWEST_FIELDS and all(
        len(r) == 1 and min(r) >= FEWEST_ROWS for r in rows)
