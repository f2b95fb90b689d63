"""One run out of a store: no stream of bytes, but what the store tells of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers.columns import RowReading
from traindx_tools.on_logs.readers.recorder import Key
from traindx_tools.on_logs.run import Run, merge

MLFLOW, TRACKIO = "mlflow", "trackio"
STORED = frozenset({MLFLOW, TRACKIO})
"""Formats of such runs."""
SYSTEM = "system/"
"""What a name of a metric of the machine begins with."""
NAME_LENGTH = 250


@dataclass(frozen=True, eq=False)
class StoredRun(Source):
    """`name` is the store's own path, and the run's id behind a colon where the store is one file."""

    told: Run = field(default_factory=Run)
    written: float = 0.0
    """When the run was begun or last written, in seconds since 1970."""


@dataclass(frozen=True)
class Point:
    """One value that was logged. `step` is NaN where none was given; `time` is in seconds since 1970."""

    metric: str
    value: float
    time: float
    step: float


def run_of(name: str, form: str, points: Iterable[Point], config: Mapping[str, Any], note: str) -> Run:
    """A run from its points, in whatever order they are. The line of a value is the number of its record."""
    by_metric: dict[str, list[Point]] = {}
    for point in points:
        by_metric.setdefault(point.metric[:NAME_LENGTH], []).append(point)
    placed = [(p, metric, _counts(mine)) for metric, mine in by_metric.items() for p in mine]
    placed.sort(key=lambda found: (found[0].step if found[2] else 0.0, found[0].time))
    reading = RowReading(name)
    number = 0
    row: dict[str, float] = {}
    place: tuple[float, float] | None = None
    for point, metric, counts in placed:
        if metric.startswith(SYSTEM):
            number += 1
            reading.recorder.add(number, [(Key(metric, "train", None, metric), point.value)], time=point.time)
            continue
        here = (point.step if counts else math.nan, point.time)
        same = place is not None and (place[0] == here[0] or (place[1] == here[1] and not counts))
        if row and (not same or metric in row):
            number += 1
            _write(reading, number, row, place)
            row = {}
        place = here if not row else place
        row[metric] = point.value
    if row:
        _write(reading, number + 1, row, place)
    artifact = Artifact(name, form, rows=reading.recorder.rows, note=note)
    return merge([reading.run(), Run(config=dict(config), artifacts=(artifact,))])


def _counts(points: list[Point]) -> bool:
    """Whether the steps count: where none is given, MLflow writes 0 for each."""
    return all(math.isfinite(p.step) for p in points) and (len(points) == 1 or len({p.step for p in points}) > 1)


def _write(reading: RowReading, number: int, row: dict[str, float], place: tuple[float, float] | None) -> None:
    step, time = place or (math.nan, math.nan)
    names = sorted(row)
    reading.row(number, ("step", "timestamp", *names), (step, time, *(row[n] for n in names)))
