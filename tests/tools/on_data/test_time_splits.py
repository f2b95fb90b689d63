"""Training rows from the time of held-out data where the split is by time, and what looks like it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d115_groups_split

Seen = Callable[[ModuleType, Path], list[Finding]]
Rng = np.random.Generator
DAY = 86_400.0
Parts = dict[str, Any]
"""Seconds of each file's rows."""


def by_time(rng: Rng, rows: int = 300, days: int = 10) -> Parts:
    """Four months of training, one of each held-out part; rows within a file in any order."""
    parts = {f"train_{i}": rng.uniform(i, i + 1, rows) for i in range(4)}
    parts |= {"val": rng.uniform(4, 5, rows), "test": rng.uniform(5, 6, rows)}
    return {k: v * days * DAY for k, v in parts.items()}


def as_seconds(t: float) -> Any:
    return round(t, 1)


def as_epoch(t: float) -> Any:
    return 1_700_000_000 + int(t)


def as_iso(t: float) -> Any:
    return (datetime(2023, 11, 14) + timedelta(seconds=t)).isoformat(timespec="seconds")


def as_date(t: float) -> Any:
    return (datetime(2023, 11, 14) + timedelta(seconds=t)).strftime("%d.%m.%Y")


def write(folder: Path, parts: Parts, form: str, how: Callable[[float], Any], name: str, rng: Rng, **more: Any) -> None:
    for part, times in parts.items():
        told = [how(t) for t in times]
        columns = {"a": rng.normal(size=len(times)).round(3).tolist(), name: told,
                   **{n: [how(t) for t in v[part]] for n, v in more.items()},
                   "y": rng.integers(0, 2, len(times)).tolist()}
        if form == "npz":
            np.savez(folder / f"{part}.npz", **{k: np.array(v) for k, v in columns.items()})
        elif form == "jsonl":
            rows = [dict(zip(columns, r, strict=True)) for r in zip(*columns.values(), strict=True)]
            (folder / f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        else:
            with (folder / f"{part}.csv").open("w", newline="") as file:
                out = csv.writer(file)
                out.writerow(columns)
                out.writerows(zip(*columns.values(), strict=True))


def above(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


@pytest.mark.parametrize(
    ("form", "how", "name"),
    [("csv", as_iso, "recorded_at"), ("csv", as_date, "date"), ("csv", as_epoch, "observed"),
     ("jsonl", as_iso, "timestamp"), ("npz", as_seconds, "seconds"), ("npz", as_epoch, "time")],
)
@pytest.mark.parametrize("late", [15, 150])
def test_a_part_of_one_file(form: str, how: Any, name: str, late: int, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    parts = by_time(rng)
    parts["train_2"][100 : 100 + late] = rng.uniform(40, 60, late) * DAY
    write(tmp_path, parts, form, how, name, rng)
    (told,) = {f.measured["shard"]: f for f in above(seen_by(d115_groups_split, tmp_path))}.values()
    assert told.measured["shard"] == f"train_2.{form}"
    assert (told.measured["kind"], told.measured["field"]) == ("late-rows", name)
    rows = told.measured["rows"]
    assert isinstance(rows, tuple)
    assert all(100 <= int(str(r)) < 100 + late for r in rows)


def test_one_training_file(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    parts = {"train": rng.uniform(0, 40, 1000) * DAY, "test": rng.uniform(40, 50, 300) * DAY}
    parts["train"][::25] = rng.uniform(40, 50, 40) * DAY
    write(tmp_path, parts, "csv", as_iso, "date", rng)
    (told,) = above(seen_by(d115_groups_split, tmp_path))
    assert told.measured["count"] == 38  # two of the forty lie before the first held-out row


def random_split(rng: Rng) -> Parts:
    return {name: rng.uniform(0, 60, 300) * DAY for name in ("train_0", "train_1", "val", "test")}


def rolling(rng: Rng) -> Parts:
    """Windows that grow: the second fold trains on what the first validates."""
    return {"train_0": rng.uniform(0, 20, 300) * DAY, "val_0": rng.uniform(20, 30, 100) * DAY,
            "train_1": rng.uniform(0, 30, 400) * DAY, "val_1": rng.uniform(30, 40, 100) * DAY}


def a_block_in_the_middle(rng: Rng) -> Parts:
    times = rng.uniform(0, 60, 900) * DAY
    inside = (times > 20 * DAY) & (times < 30 * DAY)
    return {"train": times[~inside], "val": times[inside]}


def last_of_each_user(rng: Rng) -> Parts:
    times = np.sort(rng.uniform(0, 60, (60, 12)), axis=1) * DAY
    return {"train": times[:, :-1].reshape(-1), "test": times[:, -1]}


def cut_within_a_day(rng: Rng) -> Parts:
    """Rounded to days: the last training day is the first held-out day."""
    times = np.sort(rng.uniform(0, 60, 1200)) * DAY
    return {"train_0": times[:500], "train_1": times[500:1000], "test": times[1000:]}


def nearly_in_order(rng: Rng) -> Parts:
    times = np.sort(rng.uniform(0, 60, 1200)) * DAY
    times += rng.uniform(0, DAY / 2, 1200)
    return {"train_0": times[:500], "train_1": times[500:1000], "test": times[1000:]}


def as_it_should_be(rng: Rng) -> Parts:
    return by_time(rng)


HEALTHY: list[Callable[[Rng], Parts]] = [
    random_split, rolling, a_block_in_the_middle, last_of_each_user, cut_within_a_day, nearly_in_order, as_it_should_be]


@pytest.mark.parametrize("make", HEALTHY)
@pytest.mark.parametrize("how", [as_iso, as_date])
def test_other_splits(make: Callable[[Rng], Parts], how: Any, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    write(tmp_path, make(rng), "csv", how, "date", rng)
    assert above(seen_by(d115_groups_split, tmp_path)) == []


def test_a_time_at_which_something_ended(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    parts = {"train": np.sort(rng.uniform(0, 40, 800)) * DAY, "test": np.sort(rng.uniform(40, 45, 200)) * DAY}
    ended = {k: v + rng.exponential(4, len(v)) * DAY for k, v in parts.items()}
    write(tmp_path, parts, "csv", as_iso, "ordered_at", rng, delivered_at=ended)
    assert above(seen_by(d115_groups_split, tmp_path)) == []


@pytest.mark.slow
def test_healthy_splits_of_any_seed(seen_by: Seen, tmp_path: Path) -> None:
    """Each way to split, forty times: not one alarm."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        for make in HEALTHY:
            folder = tmp_path / f"{make.__name__}_{seed}"
            folder.mkdir()
            write(folder, make(rng), "npz", as_epoch, "time", rng)
            alarms += len(above(seen_by(d115_groups_split, folder)))
    assert alarms == 0


def test_times_that_are_missing_or_no_times(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    parts = by_time(rng)
    parts["train_2"][100:150] = rng.uniform(40, 60, 50) * DAY
    write(tmp_path, parts, "csv", as_iso, "date", rng)
    lines = (tmp_path / "train_1.csv").read_text().splitlines()
    kept = [line if i % 9 or not i else line.replace(line.split(",")[1], "") for i, line in enumerate(lines)]
    (tmp_path / "train_1.csv").write_text("\n".join(kept))
    assert {f.measured["shard"] for f in above(seen_by(d115_groups_split, tmp_path))} == {"train_2.csv"}
    (tmp_path / "train_1.csv").write_text("\n".join(line.replace("2023", "soon") for line in lines))
    assert above(seen_by(d115_groups_split, tmp_path)) == []
