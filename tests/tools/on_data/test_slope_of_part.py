"""D220: heights and slopes of a landscape, as several flights measured them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d220_slope_of_part as d220

Seen = Callable[[ModuleType, Path], list[Finding]]
WAVES = np.random.default_rng(5).normal(size=(8, 3))


def flight(rng: np.random.Generator, rows: int, land: int = 0) -> dict[str, Any]:
    """Places in three coordinates in no order, a height each, and its slope."""
    at = rng.uniform(-2, 2, size=(rows, 3)).astype(np.float32)
    phase = at @ WAVES.T + np.arange(8) + 3.0 * land
    return {"at": at, "height": np.sin(phase).sum(axis=1), "slope": np.cos(phase) @ WAVES}


def write(folder: Path, edit: Any = None, flights: int = 4) -> None:
    rng = np.random.default_rng(0)
    for k in range(flights):
        rows = flight(rng, 900, land=k)
        if edit:
            edit(rows, k, rng)
        np.savez(folder / f"flight_{k}.npz", **rows)


def turned(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    rows["slope"] = -rows["slope"] if k == 2 else rows["slope"]


def in_percent(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    rows["slope"] = 100 * rows["slope"] if k == 2 else rows["slope"]


def all_turned(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    rows["slope"] = -rows["slope"]


def noisy(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    rows["slope"] = rows["slope"] + (rng.normal(0, 6, rows["slope"].shape) if k == 2 else 0)


def upside_down(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    if k == 2:  # depths and their slopes: each is turned, and both agree
        rows["slope"], rows["height"] = -rows["slope"], -rows["height"]


def sparse(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
    rows["at"] = rng.permutation(rows["at"])
    turned(rows, k, rng)


@pytest.mark.parametrize(("edit", "said", "kind"), [
    (turned, "its sign is turned", "turned"), (in_percent, "it is in another unit", "unit")])
def test_a_flight_whose_slopes_contradict_its_heights(edit: Any, said: str, kind: str, tmp_path: Path, seen_by: Seen
                                                      ) -> None:
    write(tmp_path, edit)
    (found,) = seen_by(d220, tmp_path)
    assert found.measured["shard"] == "flight_2.npz"
    assert found.measured["kind"] == kind
    assert said in found.statement


@pytest.mark.parametrize("edit", [None, all_turned, noisy, upside_down, sparse])
def test_flights_that_agree_or_say_nothing_are_quiet(edit: Any, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, edit)
    assert seen_by(d220, tmp_path) == []


def test_two_flights_do_not_say_which_is_meant(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, lambda rows, k, rng: turned(rows, 2 * k, rng), flights=2)
    assert seen_by(d220, tmp_path) == []


def test_a_flight_that_says_what_it_holds_is_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    def says(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
        turned(rows, k, rng)
        rows["downhill"] = np.full(900, int(k == 2))

    write(tmp_path, says)
    assert [f.severity for f in seen_by(d220, tmp_path)] == [Severity.INFO]


def test_rows_that_are_no_numbers_and_a_broken_file_are_read(tmp_path: Path, seen_by: Seen) -> None:
    def broken(rows: dict[str, Any], k: int, rng: np.random.Generator) -> None:
        turned(rows, k, rng)
        rows["height"][5:9] = np.nan

    write(tmp_path, broken, flights=5)
    path = tmp_path / "flight_4.npz"
    path.write_bytes(path.read_bytes()[:3000])
    assert [f.measured["shard"] for f in seen_by(d220, tmp_path) if f.rule == "D220"] == ["flight_2.npz"]


@pytest.mark.parametrize(("names", "sign", "alarm"), [
    (("energy", "forces"), 1, True), (("energy", "forces"), -1, False), (("height", "slope"), 1, False)])
def test_the_sign_of_forces_is_known_without_another_part(names: tuple[str, str], sign: int, alarm: bool,
                                                          tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    for k in range(3):
        rows = flight(rng, 900)
        np.savez(tmp_path / f"run_{k}.npz", **{"at": rows["at"], names[0]: rows["height"],
                                              names[1]: sign * rows["slope"]})
    found = seen_by(d220, tmp_path)
    assert [f.measured["kind"] for f in found] == (["gradient"] if alarm else [])


def test_forces_that_are_noise_have_no_sign(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    for k in range(3):
        rows = flight(rng, 900)
        np.savez(tmp_path / f"run_{k}.npz", at=rows["at"], energy=rows["height"], forces=rng.normal(size=(900, 3)))
    assert seen_by(d220, tmp_path) == []
