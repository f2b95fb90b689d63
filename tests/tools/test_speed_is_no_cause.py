"""A remark on speed: a cause where a person says that the run is slow, and else nothing that a verdict rests on."""

from __future__ import annotations

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.triage import judge

WAITS = Finding("T851", "Steps wait for their batch", Severity.LOW, Bearing.CAUSE, "60% of the time is waiting",
                Location(step=11, end_step=90), "speed probe", {"share": 0.6})
SLOWS = Finding("L404", "Throughput falls", Severity.HIGH, Bearing.COMPANION, "a step takes 4 times as long",
                Location(step=11, end_step=90), "train.log")
SPEED = {"loader.input-bound", "perf.throughput-decay"}


@pytest.mark.parametrize("symptom", ["", "the validation accuracy is far below the training accuracy", "loss is NaN"])
def test_waiting_for_data_leaves_the_verdict_alone(symptom: str) -> None:
    verdict = judge([WAITS], load_catalog(), symptom, records=50)
    assert verdict.status != "diagnosis_complete"
    assert not SPEED & {h.mode.id for h in verdict.causes}
    assert WAITS in verdict.anomalies


def test_a_slow_run_waits_for_its_data() -> None:
    verdict = judge([WAITS], load_catalog(), "training is slow, 3 it/s", records=50)
    assert verdict.status != "healthy"
    assert verdict.hypotheses[0].mode.id == "loader.input-bound"


def test_a_run_that_slows_down_says_so_unless_something_else_is_asked() -> None:
    assert judge([SLOWS], load_catalog(), "", records=50).hypotheses[0].mode.id == "perf.throughput-decay"
    asked = judge([SLOWS], load_catalog(), "the loss is NaN", records=50)
    assert not SPEED & {h.mode.id for h in asked.hypotheses if h.speaks_for}
