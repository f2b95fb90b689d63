"""A group that is measured otherwise from some row on; seasons, drifts, campaigns and harder groups beside it."""

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
from traindx_tools.on_data.rules import d150_changed_group

Seen = Callable[[ModuleType, Path], list[Finding]]
Values = np.ndarray[Any, np.dtype[np.float64]]
DAYS, STATIONS, ODD, FROM = 300, 6, 3, 170


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def weather(seed: int, how: Callable[[Values], None] = lambda v: None, by_station: bool = False) -> dict[str, Any]:
    """Temperature and wind of six stations: a season, a common weather, and what each has of its own.

    `how` changes an array (stations, 2, days).
    """
    rng = np.random.default_rng(seed)
    common = np.zeros(DAYS)
    for day, shock in enumerate(rng.normal(0, 1.5, DAYS)):
        common[day] = 0.8 * common[day - 1] + shock
    season = 12 * np.sin(np.arange(DAYS) / 58.0)
    made = np.empty((STATIONS, 2, DAYS))
    for station in made:
        station[0] = 10 + 2 * rng.normal() + season + common + rng.normal(size=DAYS)
        station[1] = rng.gamma(2, 2, DAYS) * (1 + 0.2 * rng.normal())
    how(made)
    order = [(s, d) for s in range(STATIONS) for d in range(DAYS)]
    order = order if by_station else sorted(order, key=lambda p: (p[1], p[0]))
    day0 = np.datetime64("2021-01-01")
    return {
        "date": [str(day0 + d) for _, d in order],
        "station": [f"ST{s}" for s, _ in order],
        "temp": np.array([made[s, 0, d] for s, d in order]),
        "wind": np.array([made[s, 1, d] for s, d in order]),
    }


def fahrenheit(made: Values) -> None:
    made[ODD, 0, FROM:] = made[ODD, 0, FROM:] * 1.8 + 32


def kilometres(made: Values) -> None:
    made[ODD, 1, FROM:] *= 3.6


def offset(made: Values) -> None:
    made[ODD, 0, FROM:] += 6


def for_a_while(made: Values) -> None:
    made[ODD, 1, FROM:FROM + 70] *= 1000


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("by_station", [False, True])
def test_a_station_that_changes_its_unit(form: str, by_station: bool, tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path / "weather", form, weather(0, fahrenheit, by_station))
    (finding,) = alarms(seen_by(d150_changed_group, tmp_path))
    assert finding.measured["repair"] == "celsius"
    assert finding.measured["rows"][0] == (ODD * DAYS + FROM if by_station else FROM * STATIONS + ODD)  # type: ignore[index]
    assert "ST3" in finding.statement
    assert "2021-06-20" in finding.statement


@pytest.mark.parametrize(("how", "kind", "field"), [(kilometres, "unit", "wind"), (offset, "offset", "temp"),
                                                    (for_a_while, "unit", "wind")])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_factors_offsets_and_a_while(how: Callable[[Values], None], kind: str, field: str, seed: int, tmp_path: Path,
                                     seen_by: Seen) -> None:
    table(tmp_path / "weather", "csv", weather(seed, how))
    (finding,) = alarms(seen_by(d150_changed_group, tmp_path))
    assert (finding.measured["kind"], finding.measured["field"]) == (kind, field)
    assert finding.measured["part"] == "'ST3'"


def test_a_factor_is_named_as_it_is_and_with_the_units_that_it_may_be(tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path / "weather", "csv", weather(3, kilometres))
    (finding,) = alarms(seen_by(d150_changed_group, tmp_path))
    assert "km/h" in str(finding.measured["units"])


def test_across_files(tmp_path: Path, seen_by: Seen) -> None:
    made = weather(4, kilometres)
    for k in range(5):
        rows = slice(k * DAYS * STATIONS // 5, (k + 1) * DAYS * STATIONS // 5)
        table(tmp_path / f"part_{k}", "jsonl", {n: v[rows] for n, v in made.items()})
    (finding,) = alarms(seen_by(d150_changed_group, tmp_path))
    assert "part_2.jsonl" in finding.statement


def drift(made: Values) -> None:
    made[ODD, 0] += np.linspace(0, 8, DAYS)


def campaign(made: Values) -> None:
    made[:, :, FROM:] += 8


def noisier(made: Values) -> None:
    made[ODD, 0, FROM:] += 2 * np.random.default_rng(0).normal(size=DAYS - FROM)


def another_climate(made: Values) -> None:
    made[ODD, 0] = 25 + 0.3 * (made[ODD, 0] - 10)


@pytest.mark.parametrize("how", [lambda v: None, drift, campaign, noisier, another_climate])
@pytest.mark.parametrize("seed", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (6, 7))])
def test_what_is_no_change(how: Callable[[Values], None], seed: int, tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path / "weather", "csv", weather(seed, how))
    assert not alarms(seen_by(d150_changed_group, tmp_path))


def test_a_field_that_names_the_unit_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    made = weather(0, fahrenheit)
    there = [s == f"ST{ODD}" and d >= "2021-06-20" for s, d in zip(made["station"], made["date"], strict=True)]
    table(tmp_path / "weather", "csv", made | {"unit": ["F" if t else "C" for t in there]})
    found = seen_by(d150_changed_group, tmp_path)
    assert not alarms(found)
    assert any("its field unit says so" in f.statement for f in found)


@pytest.mark.parametrize("factor", [18.0, 1.0])
def test_groups_without_a_time(factor: float, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(8)
    lab = rng.integers(0, 8, 2400)
    level = rng.lognormal(1 + 0.2 * lab, 0.6)
    level[(lab == 5) & (np.arange(2400) > 1300)] *= factor
    table(tmp_path / "labs", "csv", {"lab": [f"lab{k}" for k in lab], "conc": level, "age": rng.normal(50, 10, 2400)})
    found = alarms(seen_by(d150_changed_group, tmp_path))
    assert [f.measured["part"] for f in found] == (["'lab5'"] if factor > 1 else [])


def test_missing_cells_and_one_row_groups_do_no_harm(tmp_path: Path) -> None:
    lines = ["date,station,temp"] + [f"2021-01-{k % 28 + 1:02d},s{k},{'' if k % 3 else k}" for k in range(90)]
    (tmp_path / "weather.csv").write_text("\n".join([*lines, "2021-02-30,s1,abc", ""]))
    report = examine([tmp_path])
    assert not report.notes
    assert not [f for f in report.findings if f.rule == "D150"]
