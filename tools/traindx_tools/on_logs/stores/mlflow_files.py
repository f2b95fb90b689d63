"""MLflow's file store: `mlruns/EXPERIMENT/RUN/metrics/NAME`, a value a line: milliseconds, value, step.

Names of metrics may hold slashes, and are folders then. Layout from mlflow/store/tracking/file_store.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.configs.flat import scalar
from traindx_tools.on_logs.stores.stored_run import MLFLOW, Point, StoredRun, run_of

META = "meta.yaml"
MAX_META = 64 * 1024
MAX_SMALL = 64 * 1024
"""Bytes of a parameter or a tag."""
MAX_LINES = 5_000_000
"""Lines of one metric."""
MAX_LINE = 4096
"""Bytes of a line of a metric; no writer makes a tenth of it."""
MAX_METRIC = 2**29
"""Bytes read of one metric."""
_KINDS = ("metrics", "params", "tags")
_RUN_ID = re.compile(r"^run_(?:id|uuid):", re.MULTILINE)
_NAMED = re.compile(r"""^run_name:[ ]*(['"]?)(.{1,500}?)\1[ ]*$""", re.MULTILINE)
_STARTED = re.compile(r"^start_time:\s*(\d{1,15})\s*$", re.MULTILINE)
_DELETED = re.compile(r"^lifecycle_stage:\s*deleted\s*$", re.MULTILINE)
_EXPERIMENT = re.compile(r"^artifact_location:", re.MULTILINE)


def folder_of(file: Path) -> tuple[Path, str] | None:
    """The folder of the run that a file belongs to and which part of it ("metrics", "params", "tags", "meta");
    None for a file of no run."""
    if file.name == META and is_run(file.parent):
        return file.parent, "meta"
    for parent in file.parents:
        if parent.name in _KINDS and is_run(parent.parent):
            return parent.parent, parent.name
    return None


def is_run(folder: Path) -> bool:
    """Whether a folder holds one run."""
    return bool(_RUN_ID.search(_meta(folder)))


def name_of(folder: Path) -> str:
    """The name that the person or MLflow gave a run; "" for a folder of no run, or a run without one."""
    found = _NAMED.search(_meta(folder)) if is_run(folder) else None
    return found[2] if found else ""


def is_experiment(file: Path) -> bool:
    """Whether a file describes an experiment, the folder of runs."""
    return file.name == META and bool(_EXPERIMENT.search(_meta(file.parent)))


def forget() -> None:
    """Descriptions that were read before may have changed since."""
    _meta.cache_clear()


def is_deleted(folder: Path) -> bool:
    """Whether the person threw the run away."""
    return bool(_DELETED.search(_meta(folder)))


@lru_cache(maxsize=4096)
def _meta(folder: Path) -> str:
    """The description; "" where there is none, also where a pipe of that name would be waited for."""
    path = folder / META
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(MAX_META).decode("utf-8", errors="replace")
    return ""


def read(folder: Path, files: Sequence[tuple[str, Source]]) -> StoredRun:
    """One run of those of its files that were found, each with the part that it belongs to."""
    points: list[Point] = []
    damaged = unused = long = cut = 0
    config = {}
    for kind, source in files:
        assert source.local is not None
        if kind == "metrics":
            with suppress(OSError), source.open() as stream:
                name = source.local.relative_to(folder / "metrics").as_posix()
                lines = _Lines(stream)
                for line in lines:
                    point = _point(name, line) if line.endswith(b"\n") else None
                    damaged += point is None
                    points += [] if point is None else [point]
                long, cut = long + lines.long, cut + lines.cut
        elif kind == "params":
            with suppress(OSError), source.open() as stream:
                text = stream.read(MAX_SMALL).decode("utf-8", errors="replace")
                config[source.local.relative_to(folder / "params").as_posix()] = scalar(text.strip())
        else:
            unused += kind == "tags"
    note = "; ".join(_notes(damaged, long, cut, unused, bool(points)))
    started = _STARTED.search(_meta(folder))
    name = str(folder)
    return StoredRun(name, data=b"", told=run_of(name, MLFLOW, points, config, note),
                     written=int(started.group(1)) / 1000 if started else 0.0)


class _Lines:
    """The lines of one metric, each in bounds, as often as memory and time allow.

    MLflow ends each with its line: one without may have lost digits of its step, which is the last cell.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.long = 0
        """Lines that were longer than `MAX_LINE`: not used."""
        self.cut = False
        """Whether the file goes on where the reading ended."""

    def __iter__(self) -> Iterator[bytes]:
        read = number = 0
        goes_on = False
        while line := self._stream.readline(MAX_LINE):
            if read >= MAX_METRIC or number >= MAX_LINES:
                self.cut = True
                return
            read += len(line)
            whole = line.endswith(b"\n") or len(line) < MAX_LINE
            if whole and not goes_on:
                number += 1
                yield line
            self.long += not whole and not goes_on
            goes_on = not line.endswith(b"\n")


def _point(metric: str, line: bytes) -> Point | None:
    cells = line.split()
    try:
        step = float(int(cells[2])) if len(cells) > 2 else math.nan
        return Point(metric, float(cells[1]), int(cells[0]) / 1000, step)
    except (ValueError, IndexError, OverflowError):
        return None


def _notes(damaged: int, long: int, cut: int, unused: int, any_points: bool) -> Iterator[str]:
    if damaged:
        yield f"{damaged} damaged lines skipped"
    if long:
        yield f"{long} lines longer than {MAX_LINE:,} bytes: not used"
    if cut:
        yield f"{cut} metrics were read in part (at most {MAX_LINES:,} lines and {MAX_METRIC // 2**20} MiB of each)"
    if unused:
        yield f"{unused} tags: not used"
    if not any_points:
        yield "it holds no metrics"
