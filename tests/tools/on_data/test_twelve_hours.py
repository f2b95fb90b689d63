"""D228: times of a weather station without AM and PM."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d228_twelve_hours as d228

Seen = Callable[[ModuleType, Path], list[Finding]]


def write(folder: Path, pattern: str, hours: tuple[int, ...] = tuple(range(24)), stations: int = 1) -> None:
    rng = np.random.default_rng(0)
    lines = ["station,time,wind"]
    for s in range(stations):
        for day in range(30):
            for hour in hours:
                time = datetime(2022, 3, 1) + timedelta(days=day, hours=hour)
                lines.append(f"s{s},{time.strftime(pattern)},{rng.gamma(2, 2):.2f}")
    (folder / "wind.csv").write_text("\n".join(lines))


@pytest.mark.parametrize("stations", [1, 3])
def test_a_clock_of_twelve_hours(stations: int, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "%Y-%m-%d %I:%M", stations=stations)
    (found,) = seen_by(d228, tmp_path)
    assert (found.severity, found.measured["field"], found.measured["days"]) == (Severity.HIGH, "time", 30)


@pytest.mark.parametrize(("hours", "stations"), [
    (tuple(range(24)), 1),
    (tuple(range(1, 13)), 2),  # mornings of two stations
    (tuple(range(8, 20)), 1),
])
def test_clocks_of_a_whole_day(hours: tuple[int, ...], stations: int, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "%Y-%m-%d %H:%M", hours, stations)
    assert seen_by(d228, tmp_path) == []


def test_texts_that_are_no_times(tmp_path: Path, seen_by: Seen) -> None:
    (tmp_path / "wind.csv").write_text("\n".join(["station,time,wind", *(f"s,2022-03-{k}:xx,1" for k in range(400))]))
    assert seen_by(d228, tmp_path) == []
