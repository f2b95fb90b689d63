"""Plateau schedules that cut the rate of a run that improves, and those that do what they are for."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from traindx_tools.on_torch.probes.plateau import PlateauProbe

FALLING = [1.0 / (1 + 0.2 * i) for i in range(12)]


def made(**given):
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
    return ReduceLROnPlateau(optimizer, **{"patience": 1, "factor": 0.3, **given})


def state(best, mode="min"):
    other = made(mode=mode)
    other.step(best)
    return other.state_dict()


def fed(schedule, values):
    for value in values:
        schedule.step(value)


def loaded_from_another_run():
    schedule = made()
    schedule.load_state_dict(state(0.0013))
    fed(schedule, FALLING)


def loaded_from_another_run_where_larger_is_better():
    schedule = made(mode="max")
    schedule.load_state_dict(state(0.99, "max"))
    fed(schedule, [0.1 + 0.03 * i for i in range(12)])


def set_by_hand():
    schedule = made()
    schedule.best = 0.0
    fed(schedule, [torch.tensor(v) for v in FALLING])


def threshold_in_absolute_units():
    fed(made(threshold=0.5, threshold_mode="abs"), FALLING)


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        with watching(PlateauProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize(("program", "kind"), [
    (loaded_from_another_run, "loaded"), (loaded_from_another_run_where_larger_is_better, "loaded"),
    (set_by_hand, "held"), (threshold_in_absolute_units, "threshold")])
def test_cuts_of_a_run_that_improves(told, program, kind):
    (found,) = told(program)
    assert found.measured["kind"] == kind
    assert found.measured["cuts"] >= 1
    assert "ReduceLROnPlateau" in str(found)


def resumed():
    """Its best is reached again after some evaluations."""
    schedule = made()
    schedule.load_state_dict(state(0.35))
    fed(schedule, FALLING)


def resumed_and_near():
    schedule = made()
    schedule.load_state_dict(state(0.30))
    fed(schedule, [0.36, 0.35, 0.345, 0.34, 0.335, 0.33, 0.328])


def a_plateau():
    fed(made(), [*FALLING, *[FALLING[-1]] * 6])


def to_and_fro():
    schedule = made()
    schedule.load_state_dict(state(0.01))
    fed(schedule, [1.0 + 0.1 * math.sin(3 * i) for i in range(30)])


def overfitting():
    fed(made(), [0.5, 0.4, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


def slow():
    """The gain is what a plateau looks like."""
    schedule = made(threshold=0.05)
    fed(schedule, [1.0 - 0.001 * i for i in range(20)])


def never_cut():
    schedule = made()
    schedule.load_state_dict({**state(0.0013), "patience": 100})
    fed(schedule, FALLING)


def broken_values():
    schedule = made()
    fed(schedule, [math.nan, math.inf, -math.inf, 1.0, 0.5, math.nan])
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        schedule.step(torch.ones(3))


def another_schedule():
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(6):
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("program", [resumed, resumed_and_near, a_plateau, to_and_fro, overfitting, slow, never_cut,
                                     broken_values, another_schedule])
def test_plateaus_and_broken_values(told, program):
    assert told(program) == []
