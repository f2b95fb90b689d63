"""L215: held-out metrics that moved and are the same to the last digit from some record on."""

from __future__ import annotations

import numpy as np
import pytest
from numerics_builder import check_of, run, series

from traindx_tools.finding import Finding
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.run import Run

N = np.arange(24.0)
NOISE = np.random.default_rng(5)
FALLS = np.round(2.0 * np.exp(-N / 6) + 0.3 + 0.02 * NOISE.standard_normal(24), 4)
FLAT = np.round(np.where(N < 6, FALLS, 0.9 + 0.03 * NOISE.standard_normal(24)), 4)
HELD = np.round(2.0 * np.exp(-N / 6) + 0.4 + 0.01 * NOISE.standard_normal(24), 4)


def stopped(values: np.ndarray, at: int) -> np.ndarray:
    return np.where(np.arange(len(values)) < at, values, values[at])


def found(r: Run) -> list[Finding]:
    return [f for f in check_of("l215_metric_unchanged")(r) if f.measured["kind"] == "stopped"]


def test_all_held_out_metrics_stand_while_training_falls() -> None:
    only, = found(run(series("loss", FALLS), series("loss", stopped(HELD, 5), group="validation"),
                      series("accuracy", stopped(np.round(1 - HELD / 3, 3), 5), group="validation")))
    assert (only.measured["training"], only.measured["records"], only.measured["first"]) == ("falling", 19, 5)
    assert (only.where.step, only.where.end_step) == (6, 24)
    assert "as 1 of 1 other held-out metrics" in only.statement


def test_training_that_stands_as_well_says_so() -> None:
    only, = found(run(series("loss", FLAT), series("loss", stopped(HELD, 5), group="validation")))
    assert only.measured["training"] == "flat"


@pytest.mark.parametrize("held_out", [
    HELD, np.round(0.3 + 2 * np.exp(-N), 3), stopped(HELD, 21), np.repeat(HELD[:4], 6), stopped(np.round(HELD, 1), 5),
    np.where(N < 5, HELD, 0.0), np.where(N < 5, HELD, np.nan), HELD[:3]],
    ids=["moves", "converges", "short", "carried forward", "rounded", "zero", "nan", "few"])
def test_metrics_that_move_converge_or_are_rounded_are_left_alone(held_out: np.ndarray) -> None:
    assert found(run(series("loss", FALLS), series("loss", held_out, group="validation"))) == []


def test_another_held_out_metric_that_moves_speaks_against_it() -> None:
    assert found(run(series("loss", FALLS), series("loss", stopped(HELD, 5), group="validation"),
                     series("mae", HELD, group="validation"))) == []


def test_it_is_read_from_text() -> None:
    text = "\n".join(f"epoch {i + 1} train_loss {a:.4f} val_loss {b:.4f}"
                     for i, (a, b) in enumerate(zip(FALLS, stopped(HELD, 4), strict=True)))
    assert {f.measured.get("kind") for f in judge_run(read_run(["-"], stdin=text.encode()))
            if f.rule == "L215"} == {"stopped"}


def test_evaluations_after_the_rate_has_reached_zero_are_due_to_be_equal() -> None:
    """The rate of the step before the first evaluation is the last above 0."""
    held = series("loss", np.full(6, 2.0547), group="validation", step=np.arange(1, 7) * 4.0)
    ended = series("learning_rate", np.where(N < 4, 1e-3 * (4 - N), 0.0), step=N + 1)
    late = series("learning_rate", np.where(N < 8, 1e-3 * (8 - N), 0.0), step=N + 1)
    rule = check_of("l215_metric_unchanged")
    assert [f.measured["kind"] for f in rule(run(series("loss", FALLS, step=N + 1), held, late))] == ["series"]
    assert list(rule(run(series("loss", FALLS, step=N + 1), held, ended))) == []
    assert len(list(rule(run(series("loss", FALLS, step=N + 1), held)))) == 1


def test_one_that_stops_where_the_rate_ends_is_no_copy() -> None:
    held = series("loss", stopped(HELD, 5), group="validation")
    assert found(run(series("loss", FLAT), held, series("learning_rate", np.where(N < 6, 1e-3, 0.0)))) == []
    assert len(found(run(series("loss", FLAT), held, series("learning_rate", np.where(N < 20, 1e-3, 0.0))))) == 1
    assert len(found(run(series("loss", FLAT), held, series("learning_rate", np.full(24, np.nan))))) == 1
