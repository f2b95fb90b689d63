"""Groups of rows in another unit, files that are entities; what a group and an entity have by design."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.entities import unit_apart
from traindx_tools.on_data.rules import d104_other_scale, d107_row_counts, d142_odd_part

Seen = Callable[[ModuleType, Path], list[Finding]]
STOCKS = {"acme": 30, "borel": 41, "cauchy": 55, "dirac": 37, "euler": 48, "fermi": 33}


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def sites(rng: np.random.Generator, rows: int = 1200) -> dict[str, Any]:
    """Weights of six sites, each with a level of its own."""
    site = rng.integers(0, 6, rows)
    weight = rng.normal(70, 12, rows) + np.array([0, 3, -2, 4, 1, -3])[site]
    return {"weight": weight, "age": rng.integers(18, 90, rows), "site": [f"clinic_{k}" for k in site]}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("factor", "repair"), [(2.204623, "divide by 2.20462"), (1000.0, "divide by 1000")])
def test_one_site_in_another_unit(form: str, factor: float, repair: str, tmp_path: Path, seen_by: Seen) -> None:
    made = sites(np.random.default_rng(0))
    made["weight"] = np.where(np.array(made["site"]) == "clinic_4", made["weight"] * factor, made["weight"])
    table(tmp_path / "patients", form, made)
    (finding,) = alarms(seen_by(d142_odd_part, tmp_path))
    assert finding.measured["repair"] == repair
    assert finding.severity is (Severity.LOW if factor < 10 else Severity.MEDIUM)
    assert "clinic_4" in finding.statement


def test_a_field_that_names_the_unit_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    made = sites(np.random.default_rng(1))
    bad = np.array(made["site"]) == "clinic_4"
    made["weight"] = np.where(bad, made["weight"] * 1000, made["weight"])
    table(tmp_path / "patients", "csv", made | {"unit": np.where(bad, "g", "kg").tolist()})
    assert not alarms(seen_by(d142_odd_part, tmp_path))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_groups_of_other_levels_are_left_alone(form: str, tmp_path: Path, seen_by: Seen) -> None:
    made = sites(np.random.default_rng(2))
    old = np.array(made["site"]) == "clinic_4"  # a home for the elderly, and a scale that is off
    made["age"], made["weight"] = np.where(old, 85, made["age"]), made["weight"] + 25 * old
    table(tmp_path / "patients", form, made)
    found = seen_by(d142_odd_part, tmp_path)
    assert not alarms(found)
    assert found


@pytest.mark.parametrize("form", ["npz", "hdf5"])
def test_the_left_and_right_channel_of_one_device_are_of_opposite_sign(
    form: str, tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(3)
    device = rng.integers(0, 5, 500)
    left = rng.normal(size=(500, 64)).cumsum(1)
    right = left + rng.normal(size=(500, 64))
    right[device == 3] *= -1
    table(tmp_path / "sounds", form, {"x": np.stack([left, right], 1), "device": device})
    (finding,) = alarms(seen_by(d142_odd_part, tmp_path))
    assert "channel 0 and channel 1" in finding.statement
    assert finding.measured["repair"] == "negate"


@pytest.mark.parametrize(("how", "alarm"), [
    (lambda a, b, d: (a, -b if d == 2 else b), True),  # wired the wrong way round
    (lambda a, b, d: (b, a) if d == 2 else (a, b), True),
    (lambda a, b, d: (a, b * (1 + d)), False),  # each device has its own gain
])
def test_left_and_right_of_sound_files(
    how: Callable[[Any, Any, int], tuple[Any, Any]], alarm: bool, tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(6)
    for d in range(4):
        (tmp_path / f"device_{d}").mkdir()
        for k in range(30):
            a = rng.normal(size=800).cumsum() * 100
            both = np.stack(how(a, a * 0.5 + 200 * rng.normal(size=800), d), 1)
            with wave.open(str(tmp_path / f"device_{d}" / f"{k}.wav"), "wb") as file:
                file.setparams((2, 2, 8000, 0, "NONE", ""))
                file.writeframes(np.clip(both, -32000, 32000).astype("<i2").tobytes())
    found = alarms(seen_by(d142_odd_part, tmp_path))
    assert bool(found) is alarm
    assert all("device_2/" in f.statement for f in found)


def stocks(folder: Path, form: str, odd: float = 1.0, short: str = "") -> None:
    rng = np.random.default_rng(4)
    for k, (name, level) in enumerate(STOCKS.items()):
        n = 180 if name == short else 400
        close = level * np.exp(0.01 * rng.normal(size=n).cumsum()) * (odd if name == "dirac" else 1.0)
        table(folder / name, form, {"day": 1.6e9 + 86400 * np.arange(400 - n, 400), "close": close,
                                    "volume": np.round(rng.gamma(2, 500 * (k + 1), n))})


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_entities_have_levels_and_rows_of_their_own(form: str, tmp_path: Path, seen_by: Seen) -> None:
    stocks(tmp_path, form, odd=4.3, short="borel")
    for rule in (d104_other_scale, d107_row_counts, d142_odd_part):
        assert not alarms(seen_by(rule, tmp_path))


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_an_entity_in_another_unit_is_told(form: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    for k, name in enumerate(STOCKS):
        flow = rng.normal(20 + k, 2 + 0.1 * k, 300) * (1000 if name == "dirac" else 1)
        table(tmp_path / name, form, {"flow": flow, "time": np.arange(300) * 60 + 1.6e9})
    assert "dirac" in alarms(seen_by(d104_other_scale, tmp_path))[0].statement


def test_units_among_levels_of_their_own() -> None:
    found = unit_apart(np.array([1.0, 1.3, 0.8, 950.0, 1.1]), 3)
    assert found is not None
    assert found[0] == 1000.0
    assert unit_apart(np.array([1.0, 30.0, 0.1, 950.0, 5.0]), 3) is None
    assert unit_apart(np.array([1.0, np.nan, 0.0, 950.0]), 3) is None


def test_groups_that_are_none_are_read(tmp_path: Path) -> None:
    rows = ['{"site": "a", "x": NaN}', '{"site": null, "x": 1}', '{"site": ["b"], "x": "c"}', '{"x": -1e400}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows * 40))
    assert not examine([tmp_path]).notes
