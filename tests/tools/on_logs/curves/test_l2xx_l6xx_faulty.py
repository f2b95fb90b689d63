"""Generated faulty runs of every kind: the rule that is meant for it finds it in 95 of 100, above INFO."""

from __future__ import annotations

import numpy as np
import pytest
from learning_builder import RULES, Maker, serious
from learning_faulty import FAULTY

SEEDS = 20


@pytest.mark.parametrize(("make", "rule"), FAULTY, ids=[f"{m.__name__}-{rule}" for m, rule in FAULTY])
def test_generated_faulty_runs_are_found(make: Maker, rule: str) -> None:
    module = next(m for m in RULES if m.startswith(rule.lower()))
    missed = [seed for seed in range(SEEDS) if not serious(make(np.random.default_rng(seed)), module)]
    assert len(missed) <= 0.05 * SEEDS, f"{rule} missed seeds {missed}"
