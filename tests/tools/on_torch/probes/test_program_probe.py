"""The facts that a training leaves: counts, order, lines, roles, rates, files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.program import ProgramProbe, add_rate
from traindx_tools.program.entities import Role
from traindx_tools.program.timeline import Moment

sys.path.insert(0, str(Path(__file__).parent))

import healthy_trainings


def roles(seen):
    return [set(m.roles) for m in seen.scene.program.models]


def test_counts_and_order_of_an_accumulating_training(watching):
    with watching(ProgramProbe) as seen:
        healthy_trainings.accumulation(5)
    timeline = seen.scene.program.timeline
    assert timeline.count(Moment.BACKWARD) == 20
    assert timeline.count(Moment.STEP) == timeline.count(Moment.CLEAR) == 5
    assert "4 x (forward > loss > backward) > step" in seen.notes.told
    assert "healthy_trainings.py" in seen.notes.told
    assert len(seen.notes.told) < 3200


@pytest.mark.parametrize(("training", "expected"), [
    (healthy_trainings.teacher_student, [{Role.AVERAGE}, {Role.TRAINED}]),
    (healthy_trainings.q_learning, [{Role.AVERAGE}, {Role.TRAINED}]),
    (healthy_trainings.frozen_backbone, [{Role.REFERENCE}, {Role.TRAINED, Role.PROBED}]),
    (healthy_trainings.head_only, [{Role.TRAINED, Role.PROBED}]),
    (healthy_trainings.gan, [{Role.TRAINED, Role.ADVERSARY, Role.EVALUATED}, {Role.TRAINED, Role.ADVERSARY}]),
])
def test_roles_come_from_use(training, expected, watching):
    with watching(ProgramProbe) as seen:
        training()
    assert roles(seen) == expected


def test_schedules_tell_their_horizon(watching):
    transformers = pytest.importorskip("transformers")
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(ProgramProbe) as seen:
        schedule = transformers.get_linear_schedule_with_warmup(optimizer, 100, 1000)
        for _ in range(4):
            F.mse_loss(model(torch.ones(1, 2)), torch.ones(1, 2)).backward()
            optimizer.step()
            schedule.step()
    made = seen.scene.program.schedules[0]
    assert (made.steps, made.warmup, made.horizon) == (4, 100, 1000)
    assert "warm-up of 100" in seen.notes.told


def test_files_say_what_was_loaded_from_them(watching, tmp_path):
    model = nn.Linear(2, 2)
    with watching(ProgramProbe) as seen:
        torch.save({"weights": model.state_dict(), "epoch": 1}, tmp_path / "c.pt")
        model.load_state_dict(torch.load(tmp_path / "c.pt")["weights"])
        torch.load(tmp_path / "c.pt")
    taken = [f.taken for f in seen.scene.program.files if not f.written]
    assert taken == [("model",), ()]
    assert "loaded from it: nothing" in seen.notes.told


def test_a_program_that_fails_leaves_its_facts(watching):
    with pytest.raises(RuntimeError), watching(ProgramProbe) as seen:
        nn.Linear(2, 2)(torch.ones(1, 3))
    assert "timeline: 1 forward" in seen.notes.told


def test_nothing_is_told_of_a_program_without_moments(watching):
    with watching(ProgramProbe) as seen:
        torch.ones(2) + 1
    assert seen.notes.told == ""


def test_rates_are_kept_where_they_turn():
    rates = []
    for step in range(100):
        add_rate(rates, step, min(step, 50) / 50 if step < 80 else 0.1)
    assert rates[0] == (0, 0.0)
    assert rates[-1] == (99, 0.1)
    assert (50, 1.0) in rates
    assert len(rates) <= 8


def test_odd_schedules_cost_nothing(watching):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(ProgramProbe) as seen:
        for schedule in (torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
                         torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda s: 1.0])):
            F.mse_loss(model(torch.ones(1, 2)), torch.ones(1, 2)).backward()
            optimizer.step()
            schedule.step(*([1.0] if "Plateau" in type(schedule).__name__ else []))
    assert [s.steps for s in seen.scene.program.schedules] == [1, 1]
