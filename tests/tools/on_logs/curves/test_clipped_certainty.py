"""L202: a loss at the error rate times its own bound says that all outputs are 0 or 1."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import findings, run, series

from traindx_tools.on_logs.run import Run

RULE = "l202_arithmetic_constant"


def stuck(accuracy: float, cost: float, records: int = 20, name: str = "loss", scatter: float = 0.0) -> Run:
    noise = np.random.default_rng(0).normal(0, 1, records)
    acc = np.full(records, accuracy) + scatter * noise
    return run(series(name, list((1 - acc) * cost)), series("accuracy", [round(float(a), 4) for a in acc]))


@pytest.mark.parametrize("cost", [16.118, 15.942, 100.0, 27.631, 18.42])
@pytest.mark.parametrize("accuracy", [0.6448, 0.5, 0.91])
def test_the_bound_of_the_loss_is_recognised(cost: float, accuracy: float) -> None:
    (found,) = findings(stuck(accuracy, cost, scatter=0.001), RULE)
    assert found.measured["kind"] == "clipped-certainty"
    assert f"costs {cost:.4g}"[:9] in found.statement


@pytest.mark.parametrize("cost", [1.0, 2.3, 8.0, 14.0, 17.0, 40.0])
def test_other_prices_of_a_wrong_answer_are_left_alone(cost: float) -> None:
    kinds = [f.measured["kind"] for f in findings(stuck(0.6448, cost), RULE)]
    assert "clipped-certainty" not in kinds


def test_a_squared_error_has_no_such_bound() -> None:
    assert findings(stuck(0.6448, 16.118, name="mse"), RULE) == []


def test_a_loss_that_only_passes_by_is_left_alone() -> None:
    falling = run(series("loss", list(np.linspace(12, 0.5, 20))), series("accuracy", [0.6448] * 20))
    assert findings(falling, RULE) == []


@pytest.mark.parametrize("accuracy", [1.0, 0.0, float("nan")])
def test_no_accuracy_to_reckon_with(accuracy: float) -> None:
    told = run(series("loss", [16.118 * 0.3552] * 20), series("accuracy", [accuracy] * 20))
    assert all(f.measured["kind"] != "clipped-certainty" for f in findings(told, RULE))
