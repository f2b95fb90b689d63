"""What confirms a person's words is the change that they speak of: its two values, in its direction, where it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traindx_tools.on_logs.run import Note, Run, Series
from traindx_tools.symptom.answer import NOT_SEEN, SEEN, SymptomAnswer
from traindx_tools.symptom.curves import on_series
from traindx_tools.symptom.parse import parse

RNG = np.random.default_rng(5)
STEPS = np.arange(0, 5000, 20.0)
LOSS = 1.2 + 2.8 * np.exp(-STEPS / 900) + RNG.normal(0, 0.03, len(STEPS))
RESUMED = LOSS + np.where(STEPS >= 3000, 1.1 * np.exp(-(STEPS - 3000) / 500), 0)
RATE = np.where(STEPS < 1200, 3e-4, 3e-4 * np.minimum(40, 1 + (STEPS - 1180) * 0.4))


def series(name: str, values: np.ndarray) -> Series:
    nothing = np.full(len(values), np.nan)
    return Series(name=name, original=name, group="train", source="log.txt", values=values, step=STEPS, epoch=nothing,
                  time=nothing, line=np.arange(1, len(values) + 1))


def answer(words: str, run: Run) -> SymptomAnswer:
    (said,) = parse(words)
    found = on_series(said, run)
    assert found is not None
    return found


def test_a_jump_up_is_shown_by_a_rise_between_its_two_records() -> None:
    told = answer("loss jumps up after the resume at step 3000", Run(series=(series("loss", RESUMED),)))
    assert told.answer == SEEN
    assert "at step 2980 to" in told.statement
    assert "at step 3000 " in told.statement


def test_a_named_step_is_where_the_change_is_told_though_a_larger_one_follows() -> None:
    told = answer("learning rate jumps at step 1200", Run(series=(series("learning_rate", RATE),)))
    assert told.answer == SEEN
    assert "from 0.0003 at step 1180 to" in told.statement


@pytest.mark.parametrize("noted", [True, False])
def test_higher_after_the_resume_is_held_against_what_was_before(noted: bool) -> None:
    run = Run(series=(series("loss", RESUMED),))
    run = replace(run, notes=(Note("resume", "Resuming", "log.txt", 151),)) if noted else run
    told = answer("after the resume the loss is higher", run)
    assert told.answer == SEEN
    assert "at step 2980 to" in told.statement
    assert "ends at" not in told.statement


def test_a_loss_that_goes_on_as_before_is_not_higher_after_the_resume() -> None:
    run = Run(series=(series("loss", LOSS),), notes=(Note("resume", "Resuming", "log.txt", 151),))
    assert answer("after the resume the loss is higher", run).answer == NOT_SEEN


@pytest.mark.parametrize(("words", "direction"), [
    ("hangs at step 600, one rank stuck", "hang"), ("job got stuck at step 600", "hang"), ("rank 1 is stuck", "hang"),
    ("one rank is frozen", "hang"), ("training is stuck at step 600", "hang"),
    ("the loss got stuck at step 600", "still"), ("accuracy is stuck at 0.5", "still"), ("training got stuck", "still"),
])
def test_a_job_is_stuck_at_a_step_and_a_loss_at_a_level(words: str, direction: str) -> None:
    assert {s.direction for s in parse(words)} == {direction}
