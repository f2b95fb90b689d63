"""D224: gardens, and what was harvested in the weeks around the day on which each is looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d224_windows_apart as d224

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
Seen = Callable[[ModuleType, Path], list[Finding]]
Windows = dict[str, tuple[int, int]]
DAY = 86_400
START = 1_600_000_000 // DAY * DAY


def write(folder: Path, windows: Windows, of: str = "count", noise: float = 0.0) -> None:
    """`windows`: by file, the first and the last day around the row's, of what the column counts or adds up."""
    rng = np.random.default_rng(0)
    garden = rng.integers(1000, 1400, 20_000)
    when, kilos = START + rng.integers(0, 300 * DAY, 20_000), np.round(rng.gamma(2, 3, 20_000), 1)
    seen: dict[str, Any] = {}
    for name, (low, high) in windows.items():
        rows = 900 if name == "train" else 300
        ids, day = rng.integers(1000, 1400, rows), START + DAY * rng.integers(60, 240, rows)
        made = np.zeros(rows)
        for i in range(rows):
            inside = (garden == ids[i]) & (when >= day[i] + low * DAY) & (when < day[i] + high * DAY)
            made[i] = inside.sum() if of == "count" else kilos[inside].sum()
        made = np.where(rng.random(rows) < noise, made + rng.integers(1, 4, rows), made)
        seen[name] = {"garden_id": ids, "day": day, "beds": rng.integers(1, 30, rows), "harvests": made,
                      "sold": rng.integers(0, 2, rows)}
    for name, table in (*seen.items(), ("harvest", {"garden_id": garden, "at": when, "kilos": kilos})):
        pq.write_table(pa.table(table), folder / f"{name}.parquet")


@pytest.mark.parametrize("of", ["count", "sum"])
def test_a_column_that_counts_what_follows(of: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, {"train": (0, 28), "test": (-28, 0)}, of)
    (found,) = seen_by(d224, tmp_path)
    assert (found.measured["field"], found.measured["shard"], found.measured["kind"]) == (
        "harvests", "train.parquet", "future")
    assert "in the 28 days behind day" in found.statement


def test_a_column_of_another_window(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, {"train": (-90, 0), "test": (-30, 0)})
    (found,) = seen_by(d224, tmp_path)
    assert (found.measured["shard"], found.measured["kind"], found.measured["days"]) == ("test.parquet", "window", 30)


@pytest.mark.parametrize(("windows", "noise"), [
    ({"train": (-28, 0), "test": (-28, 0)}, 0.0),
    ({"train": (0, 28), "test": (0, 28)}, 0.0),  # a target: what follows, in all files
    ({"train": (-28, 0), "test": (-28, 0)}, 0.04),  # some events came late
    ({"train": (0, 28), "test": (-28, 0)}, 0.5),  # of other events: no window makes it
    ({"week_7": (-7, 0), "month_30": (-30, 0)}, 0.0),  # windows by design, as the names say
    ({"train": (0, 28)}, 0.0),  # nothing says that it is no target
])
def test_one_window_targets_and_other_events_are_quiet(windows: Windows, noise: float, tmp_path: Path, seen_by: Seen
                                                       ) -> None:
    write(tmp_path, windows, noise=noise)
    assert [f for f in seen_by(d224, tmp_path) if f.severity is not Severity.INFO] == []


def test_a_broken_table_of_events_says_nothing(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, {"train": (0, 28), "test": (-28, 0)})
    path = tmp_path / "harvest.parquet"
    path.write_bytes(path.read_bytes()[:5000])
    assert [f for f in seen_by(d224, tmp_path) if f.rule == "D224"] == []
