"""How many independent rows dependent ones count for, with known answers; series in turn are not independent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_data import examine
from traindx_tools.on_data.significance import independent_share


def series(rows: int, keeps: float, seed: int, columns: int = 1) -> np.ndarray:
    """First-order autoregressions, shape (rows, columns)."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(rows, columns))
    for row in range(1, rows):
        made[row] += keeps * made[row - 1]
    return made


@pytest.mark.parametrize("keeps", [0.0, 0.3, 0.6, 0.8])
def test_an_autoregression_counts_for_what_the_formula_says(keeps: float) -> None:
    told = independent_share(series(20_000, keeps, 0)[:, 0])
    assert told == pytest.approx((1 - keeps) / (1 + keeps), rel=0.3)


def test_series_in_turn_depend_a_turn_apart() -> None:
    turns = series(2_000, 0.8, 1, columns=12)
    assert abs(np.corrcoef(turns.ravel()[1:], turns.ravel()[:-1])[0, 1]) < 0.05
    assert independent_share(turns.ravel()) == pytest.approx(1 / 9, rel=0.4)


@pytest.mark.parametrize("values", [[], [1.0], [2.0] * 50, [0.0, 1.0] * 50])
def test_what_does_not_vary_or_alternates_counts_in_full(values: list[float]) -> None:
    assert independent_share(np.array(values)) <= 1.0
    assert independent_share(np.array(values[:9])) > 0.0


def stations(folder: Path, late: bool) -> None:
    """Twelve stations in turn; the dew point follows temperature and humidity, with an error that lasts for days."""
    rng = np.random.default_rng(3)
    hours, places = 700, 12
    warm = 10 + 6 * np.sin(np.arange(hours) / 24 * 2 * np.pi)[:, None] + rng.normal(0, 2, (1, places)) + (
        series(hours, 0.97, 4, places))
    damp = 70 + 3 * series(hours, 0.9, 5, places)
    point = warm - (100 - damp) / 5 + 0.1 * series(hours, 0.97, 6, places)
    rows = np.stack([warm.ravel(), damp.ravel(), point.ravel()], axis=1)
    if late:
        rows[3000:3600, 2] = rows[2999:3599, 2]
    text = "\n".join(f"{i % places},{a:.1f},{b:.0f},{c:.1f}" for i, (a, b, c) in enumerate(rows))
    (folder / "obs.csv").write_text(f"station,temp,humidity,dew_point\n{text}\n")


@pytest.mark.parametrize("late", [False, True])
def test_errors_that_last_in_each_station_are_no_shift(tmp_path: Path, late: bool) -> None:
    stations(tmp_path, late)
    found = [f for f in examine([tmp_path]).findings if f.rule == "D153"]
    assert bool(found) is late
    assert all("3000..3" in f.statement or "2999..3" in f.statement for f in found)
