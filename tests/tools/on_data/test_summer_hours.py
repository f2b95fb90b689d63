"""D223: rides and sunlight of a town, hour by hour, on times of one clock or of the wall."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d223_summer_hours as d223

Seen = Callable[[ModuleType, Path], list[Finding]]
HOURS = 3 * 365 * 24


def write(folder: Path, light: str, rides: str = "right", stored: str = "one", zone: str = "Europe/Vienna",
          hours: int = HOURS) -> None:
    """`light`, `rides`: right, late (an hour in summer), or early; `stored`: times of one clock or of the wall."""
    rng = np.random.default_rng(0)
    start = int(datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp())
    utc = start + 3600 * np.arange(hours)
    ahead = np.array([(datetime.fromtimestamp(t, ZoneInfo(zone)).utcoffset() or timedelta()) // timedelta(hours=1)
                      for t in utc.tolist()])
    summer = ahead > ahead.min()
    wall = (utc // 3600 + ahead) % 24
    season = 1 - 0.5 * np.cos(2 * np.pi * np.arange(hours) / (365.25 * 24))

    def sun(at: Any) -> Any:
        return np.maximum(0, np.cos(2 * np.pi * ((at // 3600 + ahead.min()) % 24 - 12) / 24)) * season

    moved = {"right": 0, "late": 3600, "early": -3600}
    bright = sun(utc - moved[light] * summer) * rng.uniform(0.7, 1, hours)
    day = np.array([1, 1, 1, 1, 1, 2, 5, 9, 12, 8, 6, 6, 7, 7, 6, 7, 9, 13, 12, 8, 5, 4, 3, 2])
    count = rng.poisson(20 * day[(wall - {"right": 0, "late": 1, "early": -1}[rides] * summer) % 24])
    time = utc if stored == "one" else utc + 3600 * ahead
    np.savez(folder / "town.npz", time=time, rides=count.astype(np.float32), light=bright.astype(np.float32))


@pytest.mark.parametrize("zone", ["Europe/Vienna", "America/Chicago"])
def test_sunlight_that_is_late_in_summer(zone: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "late", zone=zone)
    (found,) = seen_by(d223, tmp_path)
    assert found.measured["fields"] == ("light",)
    assert found.measured["others"] == ("rides",)
    assert found.measured["rules"] == ("European" if "Europe" in zone else "American")


@pytest.mark.parametrize("how", [
    {"light": "right"},  # of one clock: people come earlier
    {"light": "right", "stored": "wall"},  # of the wall: the sun comes later
    {"light": "right", "rides": "late"},  # people who keep to the sun
    {"light": "right", "zone": "Asia/Tokyo"},  # no summer time
    {"light": "late", "hours": 300 * 24},  # two changes of the clocks
])
def test_people_and_the_sun_by_their_clocks_are_quiet(how: dict[str, Any], tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, **how)
    assert seen_by(d223, tmp_path) == []


def test_gaps_and_no_numbers_are_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "late")
    with np.load(tmp_path / "town.npz") as file:
        rows = {n: file[n].copy() for n in file.files}
    rows["light"][::50] = np.nan
    rows["rides"][100:4000] = np.nan
    np.savez(tmp_path / "town.npz", **rows)
    assert all(f.measured["fields"] == ("light",) for f in seen_by(d223, tmp_path))
