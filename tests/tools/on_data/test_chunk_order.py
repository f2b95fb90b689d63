"""Chunks of a series that were joined in another order; episodes, gaps, sorted tables and shuffled rows beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.chunk_order import by_counter, by_values, smooth
from traindx_tools.on_data.rules import d151_chunks_joined

Seen = Callable[[ModuleType, Path], list[Finding]]
Values = np.ndarray[Any, np.dtype[np.float64]]
ROWS = 3200


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def walk(seed: int, rows: int = ROWS, width: int = 4) -> Values:
    """A slow series: each value is near the one before it."""
    out = np.random.default_rng(seed).normal(size=(rows, width))
    for at in range(1, rows):
        out[at] += 0.995 * out[at - 1]
    return out


def exchanged(rows: int = ROWS) -> Values:
    """Row numbers of eight chunks of which the third and the sixth changed places."""
    parts = np.array_split(np.arange(rows), 8)
    return np.concatenate([parts[k] for k in (0, 1, 5, 3, 4, 2, 6, 7)])


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "hdf5"])
def test_by_the_values(form: str, tmp_path: Path, seen_by: Seen) -> None:
    series = walk(0)[exchanged()]
    table(tmp_path / "series", form, {f"f{k}": series[:, k] for k in range(4)})
    (finding,) = alarms(seen_by(d151_chunks_joined, tmp_path))
    assert finding.measured["starts"] == (0, 800, 1200, 2000, 2400)
    assert finding.measured["order"] == (0, 3, 2, 1, 4)


@pytest.mark.parametrize("name", ["seq", "timestamp"])
def test_by_a_counter_or_a_clock(name: str, tmp_path: Path, seen_by: Seen) -> None:
    order = exchanged()
    table(tmp_path / "series", "parquet", {name: (1.6e9 + 60 * np.arange(ROWS))[order], "load": walk(1)[order, 0]})
    (finding,) = alarms(seen_by(d151_chunks_joined, tmp_path))
    assert finding.measured["kind"] == "counter"
    assert "800..1199" in finding.statement


def test_an_array_that_begins_in_its_middle(tmp_path: Path, seen_by: Seen) -> None:
    for k, part in enumerate(np.split(walk(2, 4000), 4)):
        np.save(tmp_path / f"rec_{k}.npy", np.roll(part, -600, axis=0) if k == 2 else part)
    (finding,) = alarms(seen_by(d151_chunks_joined, tmp_path))
    assert finding.measured["shard"] == "rec_2.npy"


def test_files_whose_numbers_are_not_their_order(tmp_path: Path, seen_by: Seen) -> None:
    series, times = walk(3, 4000), 1.6e9 + 60 * np.arange(4000)
    for number, k in enumerate((0, 1, 2, 4, 3, 5, 6, 7)):
        rows = slice(500 * k, 500 * k + 500)
        np.savez(tmp_path / f"part_{number:02d}.npz", time=times[rows], x=series[rows])
    (finding,) = alarms(seen_by(d151_chunks_joined, tmp_path))
    assert finding.measured["kind"] == "files"
    assert "part_03.npz" in finding.statement


def in_order(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    return {"seq": np.arange(len(series)), "x": series}


def episodes(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    lengths = rng.integers(150, 400, 10)
    return {"t": np.concatenate([np.arange(n) for n in lengths]),
            "x": np.concatenate([walk(100 + k, n) for k, n in enumerate(lengths)])}


def pauses(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    return {"time": 1.6e9 + 60 * np.arange(len(series)) + 86400 * (np.arange(len(series)) // 700), "x": series}


def shuffled(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    order = rng.permutation(len(series))
    return {"seq": np.arange(len(series))[order], "x": series[order]}


def by_station(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    return {"time": np.tile(1.6e9 + 60 * np.arange(800), 4), "x": np.concatenate([walk(9 + k, 800) for k in range(4)])}


def heavy_steps(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    return {"x": rng.standard_t(2, (len(series), 3)).cumsum(axis=0)}


def single_rows(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    return {"id": np.arange(len(series))[exchanged()], "x": rng.normal(size=(len(series), 3))}


def told_by_a_field(series: Values, rng: np.random.Generator) -> dict[str, Any]:
    order = exchanged()
    return {"seq": np.arange(len(series))[order], "x": series[order], "session": order // 400}


@pytest.mark.parametrize("how", [in_order, episodes, pauses, shuffled, by_station, heavy_steps, single_rows,
                                 told_by_a_field])
@pytest.mark.parametrize("seed", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_what_is_no_other_order(
    how: Callable[[Values, np.random.Generator], dict[str, Any]], seed: int, tmp_path: Path, seen_by: Seen
) -> None:
    table(tmp_path / "series", "npz", how(walk(seed), np.random.default_rng(seed)))
    assert not alarms(seen_by(d151_chunks_joined, tmp_path))


def test_one_smooth_number_alone_proves_no_order() -> None:
    series = smooth(walk(6, 600, 1)[np.roll(np.arange(600), 200)])
    assert by_values(series) is None


def test_what_is_no_series() -> None:
    assert by_counter(np.arange(10.0)) is None
    assert by_counter(np.full(100, np.nan)) is None
    assert by_values(smooth(np.full((100, 2), np.inf))) is None
    assert by_values(smooth(np.zeros((100, 2)))) is None


def test_a_cut_file_does_no_harm(tmp_path: Path) -> None:
    table(tmp_path / "series", "csv", {"seq": np.arange(300)[exchanged(300)], "x": walk(7, 300)[:, 0]})
    whole = (tmp_path / "series.csv").read_text()
    (tmp_path / "series.csv").write_text(whole[: len(whole) // 2] + ",,,\n\x00")
    assert not examine([tmp_path]).notes
