"""Tables of several sites, and files of series, in which a number of one part is otherwise related to its row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d194_relation_of_part as d194

Array = np.ndarray[Any, Any]
Table = dict[str, Array]
Seen = Callable[[ModuleType, Path], list[Finding]]
SITES, HOURS = 6, 24 * 60


def site(i: int) -> Table:
    """Hours of sun, warmth, wind and load, which follow the day and the weather of a site of its own size."""
    rng = np.random.default_rng(i)
    hour = np.arange(HOURS)
    clouds = np.clip(np.convolve(rng.normal(size=HOURS + 23), np.ones(24) / 6, "valid") + 0.6, 0.1, 1.2)
    sun = 900 * np.clip(np.sin(2 * np.pi * (hour % 24 - 6) / 24), 0, None) * clouds
    wind = np.abs(np.convolve(rng.normal(size=HOURS + 5), np.ones(6) / 2, "valid")) * 4
    warm = 12 + 0.012 * sun - 0.4 * wind + rng.normal(size=HOURS)
    load = (1 + i) * (40 - 0.02 * sun + 0.8 * wind + rng.normal(size=HOURS))
    time = 1_700_006_400 + 3600 * hour
    return {"time": time, "sun": sun, "wind": wind, "warm": warm, "load": load}


def written(folder: Path, edit: Callable[[int, Table], Table] = lambda i, t: t) -> None:
    for i in range(SITES):
        np.savez(folder / f"site_{i}.npz", **edit(i, site(i)))


def odd(how: Callable[[Table], Table]) -> Callable[[int, Table], Table]:
    return lambda i, t: {**t, **how(t)} if i == 3 else t


def late(name: str, by: int, start: int = 0) -> Callable[[Table], Table]:
    def how(t: Table) -> Table:
        values = t[name].copy()
        values[start:] = np.roll(t[name], by)[start:]
        return {name: values}
    return how


@pytest.mark.parametrize(("how", "kind", "field"), [
    (late("sun", 5), "rows", "sun"),
    (late("sun", -3), "rows", "sun"),
    (late("load", 2), "rows", "load"),
    (lambda t: {"sun": t["warm"], "warm": t["sun"]}, "exchanged", "sun"),
    (lambda t: {"load": t["load"][::-1]}, "reversed", "load"),
], ids=["late", "early", "target", "exchanged", "backwards"])
def test_what_was_done_to_a_number_of_one_file_is_named(how: Callable[[Table], Table], kind: str, field: str,
                                                        tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, odd(how))
    (found,) = seen_by(d194, tmp_path)
    assert found.measured["kind"] == kind
    assert field in (found.measured["field"], *found.measured["fields"])  # type: ignore[misc]
    assert found.measured["shard"] == "site_3.npz"
    assert found.severity is Severity.HIGH


def test_a_lag_from_some_row_on_is_told_with_its_rows(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, odd(late("sun", 6, HOURS * 5 // 8)))
    (found,) = seen_by(d194, tmp_path)
    assert (found.measured["field"], found.measured["kind"], found.measured["moved"]) == ("sun", "rows", 6)
    assert "site_3.npz is shifted by 6 rows (it stands too late" in found.statement
    assert abs(found.measured["rows"][0] - HOURS * 5 // 8) <= HOURS // 4  # type: ignore[index]


def test_a_number_that_was_shuffled_in_one_file_belongs_to_no_row(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, odd(lambda t: {"warm": np.random.default_rng(9).permutation(t["warm"])}))
    (found,) = seen_by(d194, tmp_path)
    assert (found.measured["kind"], found.measured["field"], found.severity) == ("lost", "warm", Severity.MEDIUM)
    assert "does not belong to the rest of its row" in found.statement


def test_a_place_in_a_series_that_is_counted_at_half_the_rate(tmp_path: Path, seen_by: Seen) -> None:
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "picks.h5", "w") as file:
        for i in range(8):
            at = rng.integers(60, 340, 70)
            wave = rng.normal(size=(70, 3, 400)) * (1 + 8 * (np.arange(400) >= at[:, None])[:, None])
            file[f"stations/ST{i:02d}/waveform"] = (wave * 100).astype(np.int16)
            file[f"stations/ST{i:02d}/arrival"] = at // 2 if i == 5 else at
    (found,) = seen_by(d194, tmp_path)
    assert (found.measured["kind"], found.measured["moved"], found.measured["field"]) == ("unit", 0.5, "arrival")
    assert "05" in str(found.measured["shard"])


def noisier(t: Table) -> Table:
    rng = np.random.default_rng(1)
    return {n: t[n] + 2 * t[n].std() * rng.normal(size=HOURS) for n in ("sun", "warm", "load")}


@pytest.mark.parametrize("how", [
    lambda t: {},
    noisier,
    lambda t: {"load": 100 - 1.5 * t["warm"] + 3 * t["wind"] + np.random.default_rng(2).normal(size=HOURS)},
    lambda t: {"wind": np.zeros(HOURS)},
    lambda t: {"load": t["load"] * 40},
], ids=["plain", "noisier", "of its own", "stands still", "larger"])
def test_a_site_that_differs_by_nature_is_left_alone(how: Callable[[Table], Table], tmp_path: Path, seen_by: Seen
                                                     ) -> None:
    written(tmp_path, odd(how))
    assert [f.statement for f in seen_by(d194, tmp_path) if f.severity is not Severity.LOW] == []


def test_lags_that_differ_from_site_to_site_are_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    written(tmp_path, lambda i, t: {**t, **late("load", 2 * i)(t)})
    assert seen_by(d194, tmp_path) == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
def test_tables_without_a_relation_say_nothing(seed: int, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(seed)
    for i in range(5):
        np.savez(tmp_path / f"part_{i}.npz", x=rng.normal(size=(300, 8)), y=rng.normal(size=300))
    assert seen_by(d194, tmp_path) == []


def test_gaps_and_a_file_that_is_cut_are_borne(tmp_path: Path, seen_by: Seen) -> None:
    def gaps(i: int, t: Table) -> Table:
        sun = t["sun"].copy()
        sun[:: 3 + i] = np.nan
        return {**t, "sun": sun, "load": np.full(HOURS, np.nan) if i == 1 else t["load"]}

    written(tmp_path, gaps)
    cut = (tmp_path / "site_5.npz").read_bytes()
    (tmp_path / "site_5.npz").write_bytes(cut[: len(cut) // 2])
    assert [f.severity for f in seen_by(d194, tmp_path) if f.severity is Severity.HIGH] == []
