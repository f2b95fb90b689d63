"""D178: fields that a time or another field of the same row determines, but for one part."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d178_told_by_the_row as d178

Seen = Callable[[ModuleType, Path], list[Finding]]
Row = dict[str, Any]
ODD = 2


def rides(folder: Path, change: Callable[[Row], Row], odd: int = ODD, time: Callable[[datetime], Any] = str,
          parts: int = 5) -> None:
    rng = np.random.default_rng(0)
    for part in range(parts):
        start = datetime(2022, 1 + part, 1)
        rows = []
        for minutes in np.sort(rng.integers(0, 28 * 1440, 400)):
            t = start + timedelta(minutes=int(minutes))
            row = {"started": time(t), "weekday": t.weekday(), "hour": t.hour, "weekend": int(t.weekday() > 4),
                   "zone": int(rng.integers(6)), "length": round(float(rng.gamma(2, 3)), 2), "month": t.month}
            rows.append(change(row) if part == odd else row)
        with (folder / f"rides_{part}.csv").open("w", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)


@pytest.mark.parametrize(("change", "field", "said"), [
    (lambda r: {**r, "weekday": r["weekday"] + 1}, "weekday", "it is 1 more in all of them"),
    (lambda r: {**r, "hour": (r["hour"] + 8) % 24}, "hour", "by a rule of its own"),
    (lambda r: {**r, "month": r["month"] - 1}, "month", "it is 1 less in all of them"),
    (lambda r: {**r, "weekday": (r["weekday"] + 1) % 7}, "weekday", "by a rule of its own"),
    (lambda r: {**r, "hour": int(r["length"] * 7) % 24}, "hour", "by no rule"),
])
@pytest.mark.parametrize("time", [str, lambda t: int((t - datetime(1970, 1, 1)).total_seconds() * 1000)])
def test_a_file_that_disagrees_with_its_own_times(
        change: Callable[[Row], Row], field: str, said: str, time: Callable[[datetime], Any], tmp_path: Path,
        seen_by: Seen) -> None:
    rides(tmp_path, change, time=time)
    told = [f for f in seen_by(d178, tmp_path) if f.measured["field"] == field]
    assert [f.severity for f in told] == [Severity.HIGH]
    assert f"{field} of rides_2.csv disagrees" in told[0].statement
    assert said in told[0].statement


@pytest.mark.parametrize("change", [
    lambda r: r, lambda r: {**r, "zone": r["zone"] + 1}, lambda r: {**r, "length": 9 * r["length"]},
])
def test_fields_that_nothing_determines_are_quiet(change: Callable[[Row], Row], tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path, change)
    assert seen_by(d178, tmp_path) == []


def test_an_hour_of_summer_time_is_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path, lambda r: {**r, "hour": r["hour"] - 1})
    assert [f.severity for f in seen_by(d178, tmp_path)] == [Severity.INFO]


def test_a_field_that_another_one_determines(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path, lambda r: {**r, "weekend": 1 - r["weekend"]}, time=lambda t: 0)
    told = seen_by(d178, tmp_path)
    assert {f.measured["field"] for f in told} >= {"weekend"}
    assert all(f.measured["shard"] == "rides_2.csv" for f in told)


def test_a_day_that_is_off_is_told_once_and_not_by_what_follows_from_it(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path, lambda r: {**r, "weekday": r["weekday"] + 1})
    assert [f.measured["field"] for f in seen_by(d178, tmp_path)] == ["weekday"]


def test_labels_that_are_not_given_out_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path, lambda r: {**r, "weekend": 0}, time=lambda t: 0)
    assert seen_by(d178, tmp_path) == []


def test_a_group_with_another_clock_is_told_with_less_weight(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    lines = []
    for minutes in np.sort(rng.integers(0, 40 * 1440, 1600)):
        t, site = datetime(2021, 5, 1) + timedelta(minutes=int(minutes)), "abcd"[rng.integers(4)]
        lines.append(f"{t},{site},{(t.hour + 9 * (site == 'c')) % 24},{rng.normal():.3f}")
    (tmp_path / "log.csv").write_text("\n".join(["time,site,hour,value", *lines]))
    (told,) = seen_by(d178, tmp_path)
    assert (told.severity, told.measured["by"], told.measured["part"]) == (Severity.MEDIUM, "site", "'c'")


def test_two_files_and_no_whole_numbers_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path, lambda r: {**r, "weekday": r["weekday"] + 1}, odd=1, parts=2)
    assert seen_by(d178, tmp_path) == []
    for i in range(4):
        np.savez(tmp_path / f"x{i}.npz", x=np.full((100, 3), np.nan))
    assert seen_by(d178, tmp_path) == []
