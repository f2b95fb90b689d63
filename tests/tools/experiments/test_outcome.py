"""Outcomes: as text, what they read in a run that shows the symptom, in one that does not, and in a broken one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from experiment_traces import curve, levels, trace

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.outcome import Outcome, parse_outcome
from traindx_tools.experiments.reading import event, number
from traindx_tools.finding import Bearing, Finding, Location, Severity


@pytest.mark.parametrize("text", ["nonfinite", "error:out of memory", "exit", "hang:12", "level:loss<0.5",
                                  "level:validation accuracy>0.9", "fall", "rise:validation loss",
                                  "gap:loss,validation loss",
                                  "step-time", "memory-growth", "level"])
def test_an_outcome_survives_its_own_text(text: str) -> None:
    assert parse_outcome(str(parse_outcome(text))) == parse_outcome(text)


@pytest.mark.parametrize(("text", "said"), [("nan", "names no outcome"), ("", "names no outcome"),
                                            ("level:loss<1e", "is no number"), ("hang:soon", "is no number"),
                                            ("hang:-1", "positive"), ("Level", "names no outcome")])
def test_what_is_no_outcome_is_said(text: str, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        parse_outcome(text)


def test_a_loss_that_stops_being_finite_is_seen_at_its_step() -> None:
    seen = event(Outcome("nonfinite"), trace([1.0, 0.9, math.nan, math.nan]))
    assert (seen.there, seen.at) == (True, 3.0)
    assert not event(Outcome("nonfinite"), trace([1.0, 0.9])).there
    assert not event(Outcome("nonfinite"), trace()).there


def test_what_the_instruments_found_counts_before_any_record() -> None:
    found = Finding("T102", "t", Severity.CRITICAL, Bearing.SIGN, "the gradient is nan", Location(step=2), "here")
    assert event(Outcome("nonfinite"), trace([1.0], findings=(found,))).at == 2


def test_another_curve_that_is_nan_before_it_begins_is_no_symptom() -> None:
    told = trace([1.0, 0.9], curves={"live/loss": curve([1.0, 0.9]), "validation accuracy": curve([math.nan, 0.5])})
    assert not event(Outcome("nonfinite"), told).there
    assert event(Outcome("nonfinite", "validation accuracy"), told).there


def test_an_error_is_told_from_another() -> None:
    failed = trace([1.0, 1.0], exit_code=1, error="RuntimeError: CUDA out of memory")
    assert event(Outcome("error", "out of memory"), failed).there
    assert not event(Outcome("error", "IndexError"), failed).there
    assert event(Outcome("exit"), failed).there
    assert not event(Outcome("exit"), trace([1.0])).there
    assert not event(Outcome("exit"), trace([1.0], exit_code=None, ended=False, stopped="time")).there


def test_a_run_that_is_quiet_hangs_and_one_that_ended_does_not() -> None:
    assert event(Outcome("hang"), trace([1.0], ended=False, exit_code=None, quiet=31.0)).there
    assert not event(Outcome("hang", "60"), trace([1.0], ended=False, exit_code=None, quiet=31.0)).there
    assert not event(Outcome("hang"), trace([1.0], quiet=31.0)).there


def test_levels_falls_and_rises() -> None:
    flat, falling = trace(levels(2.3)), trace(np.linspace(2.3, 0.3, 50))
    back = trace(np.concatenate([np.linspace(2.0, 0.5, 25), np.linspace(0.5, 1.5, 25)]))
    assert number(Outcome("level"), flat).value == pytest.approx(2.3, abs=0.02)
    assert number(Outcome("fall"), flat).value == pytest.approx(0, abs=0.02)
    assert number(Outcome("fall"), falling).value > 0.7
    assert number(Outcome("rise"), back).value == pytest.approx(0.37, abs=0.05)
    assert number(Outcome("rise"), falling).value == pytest.approx(0, abs=0.02)


def test_a_score_rises_where_it_learns() -> None:
    told = trace(curves={"validation accuracy": curve(np.linspace(0.1, 0.9, 20))})
    assert number(Outcome("fall", "validation accuracy"), told).value > 0.7
    assert number(Outcome("gap", "accuracy"), told) is None


def test_a_number_is_read_up_to_a_step_alone() -> None:
    told = trace([1.0] * 20 + [5.0] * 20)
    assert number(Outcome("level"), told, 20.0).value == 1.0
    assert number(Outcome("level"), told).value == 5.0
    assert number(Outcome("level", "validation loss"), told) is None


def test_a_gap_between_training_and_validation() -> None:
    told = trace(levels(0.1), curves={"live/loss": curve(levels(0.1)), "validation loss": curve(levels(0.9, 1))})
    assert number(Outcome("gap"), told).value == pytest.approx(0.8, abs=0.02)
    assert number(Outcome("gap", "loss", "validation loss"), told).value == pytest.approx(0.8, abs=0.02)


def test_seconds_a_step_and_growing_memory() -> None:
    steps = np.arange(1.0, 41)
    told = trace(curves={"live/step_time": curve([2.0, *[0.1] * 39]), "live/resident": curve(1e9 + 1e6 * steps, steps)})
    assert number(Outcome("step-time"), told).value == pytest.approx(0.1)
    assert number(Outcome("memory-growth"), told).value == pytest.approx(1e6)
    assert number(Outcome("step-time"), trace([1.0])) is None
