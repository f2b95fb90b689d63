"""States that went into objects which do not train, and resumes that are right."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

from traindx_tools.on_torch.probes.restored import RestoredProbe


def stepped(model, optimizer, schedule=None, steps=6):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()


def saved(steps=6):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = CosineAnnealingLR(optimizer, 100)
    stepped(model, optimizer, schedule, steps)
    return copy.deepcopy((model.state_dict(), optimizer.state_dict(), schedule.state_dict()))


SAVED = saved()


def restored():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = CosineAnnealingLR(optimizer, 100)
    model.load_state_dict(SAVED[0])
    optimizer.load_state_dict(copy.deepcopy(SAVED[1]))
    schedule.load_state_dict(SAVED[2])
    return model, optimizer, schedule


def optimizer_replaced():
    model, _, _ = restored()
    stepped(model, torch.optim.AdamW(model.parameters()))


def optimizer_emptied():
    model, optimizer, _ = restored()
    optimizer.state.clear()
    stepped(model, optimizer)


def schedule_replaced():
    model, optimizer, _ = restored()
    stepped(model, optimizer, CosineAnnealingLR(optimizer, 100))


def schedule_reset():
    model, optimizer, schedule = restored()
    schedule.last_epoch = 0
    stepped(model, optimizer, schedule)


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        with watching(RestoredProbe) as seen:
            program()
        return list(seen.findings)
    return told


@pytest.mark.parametrize(("program", "kind"), [
    (optimizer_replaced, "optimizer replaced"), (optimizer_emptied, "optimizer emptied"),
    (schedule_replaced, "scheduler replaced"), (schedule_reset, "scheduler reset")])
def test_states_that_are_lost(told, program, kind):
    assert [f.measured["kind"] for f in told(program)] == [kind]


def as_it_was():
    model, optimizer, schedule = restored()
    stepped(model, optimizer, schedule)


def evaluated():
    model, _, _ = restored()
    torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 4))


def loaded_at_the_end():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    stepped(model, optimizer)
    optimizer.load_state_dict(copy.deepcopy(SAVED[1]))


def another_schedule_beside():
    model, optimizer, schedule = restored()
    other = StepLR(optimizer, 10)
    for _ in range(6):
        stepped(model, optimizer, schedule, steps=1)
        other.step()


def two_players():
    one, two = restored(), restored()
    for _ in range(6):
        stepped(*one, steps=1)
        stepped(*two, steps=1)


def a_second_phase():
    """The restored one finishes its phase; another one begins the next."""
    model, optimizer, schedule = restored()
    stepped(model, optimizer, schedule)
    stepped(model, torch.optim.AdamW(model.parameters()))


def without_state():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.load_state_dict(torch.optim.SGD(model.parameters(), 0.1).state_dict())
    stepped(model, torch.optim.SGD(model.parameters(), 0.1))


def a_state_that_does_not_fit():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(KeyError):
        optimizer.load_state_dict({})
    stepped(model, optimizer)


@pytest.mark.parametrize("program", [as_it_was, evaluated, loaded_at_the_end, another_schedule_beside, two_players,
                                     a_second_phase, without_state, a_state_that_does_not_fit])
def test_resumes_that_are_right_and_broken_states(told, program):
    assert told(program) == []
