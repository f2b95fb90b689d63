"""Data files that both runs have: what one field of a file holds here and there, by its statistics.

Files are paired by their path below the folder of the run. Two samples of one origin differ a little in every
statistic; told is what they hardly differ by: another scale, another level, another form, many more or fewer rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers import format_of, read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.summary import Summary

SECONDS = 10.0
"""Time for reading the files of both runs once more; what was not read by then is not compared."""
MOST_FILES = 200
SPREAD, LEVEL = 1.5, 0.5
"""Times of the spread, and standard deviations of the mean, from which two files are not samples of one origin."""
ROWS = 1.25
"""Times of the rows from which it is told."""


@dataclass(frozen=True)
class DataDifference:
    """One field of a file. `here` is of the broken run, `there` of the working one; `factor`: of the spread."""

    file: str
    field: str
    text: str
    factor: float | None = None

    def statement(self) -> str:
        """One line."""
        return f"{self.field} of {self.file}: {self.text}" if self.field else f"{self.file}: {self.text}"


def data_differences(here: Mapping[str, Path], there: Mapping[str, Path]) -> list[DataDifference]:
    """Fields that differ beyond sampling, of the files (by their name below the run) that both runs have."""
    ends = time.monotonic() + SECONDS
    found: list[DataDifference] = []
    for name in [n for n in here if n in there][:MOST_FILES]:
        if time.monotonic() > ends or _same_bytes(here[name], there[name]):
            continue
        mine, other = _fields(here[name], ends), _fields(there[name], ends)
        for field in [f for f in mine if f in other]:
            found += _differences(name, field, mine[field], other[field])
        gone, new = [f for f in other if f not in mine], [f for f in mine if f not in other]
        if mine and other and (gone or new):
            found.append(DataDifference(name, "", "; ".join(
                [*([f"holds {', '.join(new[:5])} in the broken run alone"] if new else []),
                 *([f"holds {', '.join(gone[:5])} in the working run alone"] if gone else [])])))
    return sorted(found, key=lambda d: -abs(math.log(d.factor)) if d.factor else 0.0)


def _same_bytes(one: Path, other: Path) -> bool:
    try:
        if one.stat().st_size != other.stat().st_size:
            return False
        with one.open("rb") as a, other.open("rb") as b:
            while True:
                first, second = a.read(2**20), b.read(2**20)
                if first != second:
                    return False
                if not first:
                    return True
    except OSError:
        return False


def _fields(path: Path, ends: float) -> dict[str, Summary]:
    """The statistics of each field of a file; none where it cannot be read."""
    try:
        form = format_of(path)
        shards = read_file(path, path.name, form, Bounds(values=2**24, rows=50_000, ends=ends)) if form else ()
        return {name: s for shard in shards for name, s in shard.summaries.items()}
    except (OSError, UnreadableInput, Broken):
        return {}


def _differences(file: str, field: str, here: Summary, there: Summary) -> Iterable[DataDifference]:
    if here.shape != there.shape:
        yield DataDifference(file, field, f"rows of shape {here.shape} here, {there.shape} there")
        return
    if here.dtype != there.dtype:
        yield DataDifference(file, field, f"{here.dtype} here, {there.dtype} there")
    if max(here.rows, there.rows) > ROWS * max(1, min(here.rows, there.rows)):
        yield DataDifference(file, field, f"{here.rows:,} rows here, {there.rows:,} there")
    values = (here.mean, here.std, there.mean, there.std)
    if not all(map(math.isfinite, values)):
        return
    wide = max(here.std, there.std)
    factor = here.std / there.std if here.std > 0 and there.std > 0 else None
    apart = abs(here.mean - there.mean) / wide if wide else float(here.mean != there.mean)
    if (factor is not None and not 1 / SPREAD < factor < SPREAD) or (factor is None and wide > 0) or apart > LEVEL:
        times = f"{factor:.3g} times the spread: " if factor is not None and not 1 / SPREAD < factor < SPREAD else ""
        yield DataDifference(file, field, f"{times}mean {here.mean:.4g} and standard deviation {here.std:.4g} here, "
                             f"{there.mean:.4g} and {there.std:.4g} there", factor)
