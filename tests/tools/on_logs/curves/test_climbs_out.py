"""A loss that grows by a factor again and again until somebody stops the run (L106): far above all it had been."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.on_logs.run import Floats

FELL = 0.4 + 1.9 * np.exp(-np.arange(90) / 25) + np.random.default_rng(1).normal(0, 0.02, 90)


def then(factor: float, records: int) -> list[float]:
    return [*FELL, *(FELL[-1] * factor ** np.arange(1, records + 1))]


def judged(values: list[float] | Floats) -> list[str]:
    return [f.statement for f in findings(run(series("loss", list(values), every=20)), "l106_divergence")]


@pytest.mark.parametrize(("factor", "records"), [(1.18, 60), (1.18, 30), (1.6, 20), (3.0, 5)])
def test_a_loss_that_grows_by_a_factor_is_told_from_where_it_leaves_its_level(factor: float, records: int) -> None:
    (said,) = judged(then(factor, records))
    began = int(said.rsplit("from step ", 1)[1].split()[0])
    assert 1800 <= began <= 1900


def test_a_climb_that_is_cut_off_tells_the_median_of_what_it_names() -> None:
    (said,) = judged(then(3.0, 5))
    assert "is the median of steps 1860\u20131900" in said


@pytest.mark.parametrize("twin", [
    [*FELL, 5.0],
    [*FELL, 0.45, 9.0, 30.0],
    [*FELL, 30.0, 4.0, 0.43, 0.42],
    list(FELL * (1 + (np.random.default_rng(2).random(90) < 0.15) * 5)),
    list(FELL[::2]),
], ids=["one record", "two records", "comes back", "spikes", "falls"])
def test_twins_that_look_like_it_are_left_alone(twin: list[float]) -> None:
    assert judged(twin) == []


@pytest.mark.parametrize("broken", [[], [1.0], [0.0] * 9, [-1.0, -2.0, 3.0, 40.0, 500.0, 6000.0],
                                    [float("nan")] * 8 + [1.0, 20.0]])
def test_what_is_no_positive_curve_is_no_fault_of_this_kind(broken: list[float]) -> None:
    assert all("turns" not in said for said in judged(broken))
