"""What a program was seen to have that an experiment can take away: each part there, and its twin without it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

from traindx_tools.experiments.trace import KNOWN_PARTS, PARTS
from traindx_tools.on_torch.probes.parts import PartsProbe

DATA = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))


def seen(watching, *, layers=(), loader=None, optimizer=None, schedule=None, accumulate=1, clip=False, frozen=False):
    model = nn.Sequential(nn.Linear(4, 8), *layers, nn.Linear(8, 3))
    model[0].weight.requires_grad_(not frozen)
    steps = (optimizer or torch.optim.SGD)([p for p in model.parameters() if p.requires_grad], lr=0.1)
    scheduler = schedule(steps) if schedule else None
    with watching(PartsProbe) as told:
        for number, (x, y) in enumerate(DataLoader(DATA, 4) if loader is None else loader):
            nn.functional.cross_entropy(model(x), y).backward()
            if (number + 1) % accumulate:
                continue
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
            steps.zero_grad()
            if scheduler is not None:
                scheduler.step()
    (parts,) = [fields["parts"] for kind, fields in told.notes.marks if kind == PARTS]
    assert set(parts) <= set(KNOWN_PARTS)
    return parts


def test_a_plain_program_has_the_order_of_its_rows_and_nothing_else(watching):
    assert set(seen(watching)) == {"stored-order"}


@pytest.mark.parametrize(("how", "part", "words"), [
    ({"layers": (nn.Dropout(0.2),)}, "dropout", "drops a share of 0.2"),
    ({"layers": (nn.BatchNorm1d(8),)}, "batch-norm", "BatchNorm1d"),
    ({"loader": DataLoader(DATA, 4, shuffle=True)}, "shuffled", "at random"),
    ({"loader": DataLoader(DATA, 4, sampler=WeightedRandomSampler([1.0] * 32, 32))}, "weighted", "by weights"),
    ({"optimizer": lambda p, lr: torch.optim.AdamW(p, lr=lr, weight_decay=0.3)}, "decay", "by 0.3"),
    ({"optimizer": torch.optim.Adam}, "moments", "Adam"),
    ({"schedule": lambda o: torch.optim.lr_scheduler.StepLR(o, 2)}, "schedule", "StepLR"),
    ({"accumulate": 4}, "accumulation", "4 backward passes"),
    ({"clip": True}, "clipping", "clipped"),
    ({"frozen": True}, "frozen", "1 of 4"),
])
def test_each_part_is_told_with_its_place(watching, how, part, words):
    assert words in seen(watching, **how)[part]


def test_what_is_off_is_no_part(watching):
    parts = seen(watching, layers=(nn.Dropout(0.0),), optimizer=lambda p, lr: torch.optim.SGD(p, lr=lr, weight_decay=0))
    assert not set(parts) & {"dropout", "decay", "schedule", "moments"}


class Stream(IterableDataset):
    def __iter__(self):
        return iter(DATA)


def test_a_stream_has_no_order_that_is_known(watching):
    assert not set(seen(watching, loader=DataLoader(Stream(), 4))) & {"shuffled", "stored-order", "workers"}


def test_a_program_that_never_steps_tells_nothing(watching):
    with watching(PartsProbe) as told:
        nn.Linear(2, 2)(torch.ones(1, 2))
    assert told.notes.marks == []


def test_what_is_loaded_besides_weights(watching):
    weight = nn.Parameter(torch.ones(3))
    first = torch.optim.Adam([weight], 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(first, 2)
    weight.sum().backward()
    first.step()
    with watching(PartsProbe) as told:
        second = torch.optim.Adam([weight], 0.1)
        second.load_state_dict(first.state_dict())
        torch.optim.lr_scheduler.StepLR(second, 2).load_state_dict(schedule.state_dict())
        weight.sum().backward()
        second.step()
    (parts,) = [fields["parts"] for kind, fields in told.notes.marks if kind == PARTS]
    assert {"state-loaded", "schedule-loaded"} <= set(parts)


def test_an_empty_state_is_none(watching):
    weight = nn.Parameter(torch.ones(3))
    with watching(PartsProbe) as told:
        optimizer = torch.optim.Adam([weight], 0.1)
        optimizer.load_state_dict(torch.optim.Adam([weight], 0.1).state_dict())
        weight.sum().backward()
        optimizer.step()
    (parts,) = [fields["parts"] for kind, fields in told.notes.marks if kind == PARTS]
    assert "state-loaded" not in parts
