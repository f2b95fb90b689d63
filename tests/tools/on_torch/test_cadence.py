"""Which steps the always-on probes measure."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from torch import nn

from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch import attachment
from traindx_tools.on_torch.measures.cadence import SETTLED, SPARSER, Cadence


def due(cadence: Cadence, until: int) -> list[int]:
    return [s for s in range(until) if cadence.due(s)]


def test_the_first_steps_are_all_measured_and_later_ones_seldom() -> None:
    assert due(Cadence(3, 10), 35) == [0, 1, 2, 10, 20, 30]


def test_a_long_run_is_looked_at_more_seldom() -> None:
    late = [s for s in due(Cadence(3, 25, thins=True), 4 * SETTLED) if s >= SETTLED]
    assert late == list(range(SETTLED, 4 * SETTLED, 25 * SPARSER))


def test_an_interval_that_was_asked_for_is_kept_to() -> None:
    asked = Cadence.chosen({"gradients_every": 1}, "gradients", 12, 25)
    assert due(asked, 2 * SETTLED) == list(range(2 * SETTLED))
    assert Cadence.chosen({}, "gradients", 12, 25).thins


def test_attaching_twice_is_attaching_once(tmp_path: Path) -> None:
    made = attachment.attach(open_session(Settings(str(tmp_path), ("speed",))))
    try:
        assert made is not None
        made.patch()
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.ones(4, 2)).sum().backward()
            optimizer.step()
        assert made.scene.step == 3
    finally:
        close_session()
        attachment.detach()
