"""Of three files the spread says little: one in another unit is told by what goes along with its column elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traindx_tools.on_data import examine


def _write(folder: Path, year: int, wind: np.ndarray, power: np.ndarray, rng: np.random.Generator) -> Path:
    path = folder / f"plant_{year}.csv"
    rows = np.column_stack([wind, power, rng.normal(9, 5.5, len(wind))])
    path.write_text("wind_speed,power_mw,temp\n" + "\n".join(f"{a:.2f},{b:.4f},{c:.1f}" for a, b, c in rows) + "\n")
    return path


def _power(wind: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip((wind / 11.0) ** 3, 0.0, 1.0) * 2.0 + rng.normal(0, 0.03, len(wind))


def _told(folder: Path, factor: float, *, windier: float = 1.0, related: bool = True) -> list[str]:
    rng = np.random.default_rng(5)
    paths = []
    for year in (2021, 2022, 2023):
        last = year == 2023
        wind = np.abs(rng.normal(7.4 if last else 6.9 + 0.9 * (year - 2021), 2.1, 1500)) * (windier if last else 1.0)
        power = _power(wind, rng) if related else rng.normal(1, 0.3, len(wind))
        paths.append(_write(folder, year, wind * (factor if last else 1.0), power, rng))
    return [f"{f.severity.value} {f.where.file}: {f.statement}" for f in examine(paths).findings if f.rule == "D104"]


def test_a_year_in_another_unit_obeys_the_curve_of_the_others_once_it_is_undone(tmp_path: Path) -> None:
    (told,) = _told(tmp_path, 3.6)
    assert "plant_2023.csv" in told
    assert "wind_speed" in told
    assert "m/s to km/h" in told


def test_a_windier_year_and_columns_that_nothing_goes_along_with_are_left_alone(tmp_path: Path) -> None:
    assert _told(tmp_path, 1.0, windier=3.6) == []
    assert _told(tmp_path, 3.6, related=False) == []
    assert _told(tmp_path, 1.0) == []
