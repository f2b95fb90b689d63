"""Healthy runs of many kinds: no rule about learning or domains says more than a remark."""

from __future__ import annotations

import numpy as np
import pytest
from learning_builder import Maker, serious
from learning_healthy import HEALTHY

SEEDS = 8
"""Times 32 kinds of runs."""


@pytest.mark.parametrize("make", HEALTHY, ids=[m.__name__ for m in HEALTHY])
def test_generated_healthy_runs_are_left_alone(make: Maker) -> None:
    alarms = [
        f"seed {seed}: {f.rule} {f.statement}"
        for seed in range(SEEDS)
        for f in serious(make(np.random.default_rng(seed)))
    ]
    assert not alarms, "\n".join(alarms)
