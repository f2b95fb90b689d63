"""Tables with a column for each site, of which one has its days at other hours than all others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d155_clock_of_group as d155

Seen = Callable[[ModuleType, Path], list[Finding]]
HOURS = 24 * 120


def table(folder: Path, late: dict[int, float], names: Callable[[int], str] = lambda i: f"load_site{i}",
          gaps: bool = False) -> None:
    rng = np.random.default_rng(0)
    hour = np.arange(HOURS)
    lines = []
    columns = []
    for i in range(6):
        day = 2 * np.pi * (hour - late.get(i, 0.0)) / 24
        values = (3 + i) * (10 + 3 * np.sin(day) + np.sin(2 * day) + 0.5 * rng.normal(size=HOURS))
        columns.append(np.where(rng.random(HOURS) < 0.5 * gaps, np.nan, values))
    for k in hour:
        cells = ["" if np.isnan(c[k]) else f"{c[k]:.2f}" for c in columns]
        lines.append(",".join([str(1_700_006_400 + 3600 * int(k)), *cells]))
    (folder / "load.csv").write_text("\n".join([",".join(["timestamp", *map(names, range(6))]), *lines]))


@pytest.mark.parametrize("by", [5, -3])
def test_a_column_whose_days_are_late(by: int, tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path, {3: by})
    (found,) = seen_by(d155, tmp_path)
    assert (found.measured["field"], found.measured["hours"]) == ("load_site3", by)


@pytest.mark.parametrize("late", [{}, {i: 1.5 * i for i in range(6)}, {3: 0.5}, {1: 4, 3: 6}],
                         ids=["none", "all differ", "half an hour", "two"])
def test_columns_that_agree_or_differ_by_nature_are_left_alone(late: dict[int, float], tmp_path: Path, seen_by: Seen
                                                               ) -> None:
    table(tmp_path, late)
    assert seen_by(d155, tmp_path) == []


def test_measures_of_other_names_are_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path, {3: 5}, lambda i: ("load", "warmth", "wind", "soil", "rain", "sun")[i])
    assert seen_by(d155, tmp_path) == []


def test_columns_with_gaps_are_borne(tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path, {}, gaps=True)
    assert seen_by(d155, tmp_path) == []
