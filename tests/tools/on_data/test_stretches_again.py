"""Measurements that recur exactly in one file while its times go on, and what looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d122_repeated_stretch

Seen = Callable[[ModuleType, Path], list[Finding]]
ROWS = 900


def sensors(rng: np.random.Generator) -> Any:
    return np.round(rng.normal(size=(ROWS, 4)).cumsum(axis=0), 2)


def write(folder: Path, form: str, x: Any, **more: Any) -> None:
    columns = {"time": np.arange(ROWS) * 60 + 1_700_000_000} | {f"s{k}": x[:, k] for k in range(x.shape[1])} | more
    if form == "csv":
        table = np.stack(list(columns.values()), axis=1)
        np.savetxt(folder / "train.csv", table, "%.10g", ",", header=",".join(columns), comments="")
    elif form == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(columns), folder / "train.parquet")
    elif form == "npz":
        np.savez(folder / "train.npz", time=columns["time"], x=x, **more)
    else:
        np.save(folder / "train.npy", x)


def told_in(found: list[Finding]) -> list[Any]:
    return [f.measured for f in found if f.rule == "D122"]


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "npy"])
def test_times_go_on_and_measurements_recur(form: str, seen_by: Seen, tmp_path: Path) -> None:
    x = sensors(np.random.default_rng(0))
    x[500:580] = x[200:280]
    write(tmp_path, form, x)
    (told,) = told_in(seen_by(d122_repeated_stretch, tmp_path))
    assert told["rows"] == (500, 579)
    assert told["source"] == (200, 279)
    assert told["kind"] == "again"


def _constant(x: Any, rng: np.random.Generator) -> None:
    x[200:300] = x[200]
    x[600:700] = x[200]


def _periodic(x: Any, rng: np.random.Generator) -> None:
    x[300:600] = x[:60][np.arange(300) % 60]


def _few(x: Any, rng: np.random.Generator) -> None:
    x[500:510] = x[200:210]


def _one_column(x: Any, rng: np.random.Generator) -> None:
    x[500:580, :3] = x[200:280, :3]


@pytest.mark.parametrize("change", [_constant, _periodic, _few, _one_column])
@pytest.mark.parametrize("form", ["csv", "npz"])
def test_what_is_no_repetition(form: str, change: Any, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = sensors(rng)
    change(x, rng)
    write(tmp_path, form, x)
    assert told_in(seen_by(d122_repeated_stretch, tmp_path)) == []


def test_rows_of_a_rare_class_that_are_repeated_on_purpose(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x, label = sensors(rng), (rng.random(ROWS) < 0.5).astype(np.int64)
    label[200:280] = label[500:580] = 1
    x[500:580] = x[200:280]
    write(tmp_path, "csv", x, label=label)
    assert told_in(seen_by(d122_repeated_stretch, tmp_path)) == []


def test_false_alarms_over_many_tables(seen_by: Seen, tmp_path: Path) -> None:
    """Forty tables of slow, coarsely rounded and daily measurements: none repeats a stretch beyond chance."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        day = np.sin(np.arange(ROWS)[:, None] * 2 * np.pi / 48 + rng.uniform(0, 6, 3))
        x = np.round(day * rng.uniform(1, 4) + 0.2 * rng.normal(size=(ROWS, 3)), int(rng.integers(0, 2)))
        write(folder, "npz", x)
        alarms += len(told_in(seen_by(d122_repeated_stretch, folder)))
    assert alarms == 0


def test_a_table_with_empty_cells(seen_by: Seen, tmp_path: Path) -> None:
    x = sensors(np.random.default_rng(3))
    x[500:580] = np.nan
    x[200:280] = np.nan
    write(tmp_path, "csv", x)
    assert told_in(seen_by(d122_repeated_stretch, tmp_path)) == []
