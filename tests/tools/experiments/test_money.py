"""What is left of a budget is used where a part of a run may decide, and kept where it may not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from experiment_traces import levels, trace

from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine, Result
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.trace import LIVE, Applied, Curve, Trace

STEPS = 50


@dataclass
class Slow:
    """A place where a run takes `length` seconds; controls end around 1.9, runs with the change at `changed`."""

    length: float
    changed: float
    fingerprint: str = ""
    workspace: Path = Path()
    runs: list[str] = field(default_factory=list)

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        change = next((c for c in prepared.inside if c.name != "seed"), Change())
        seed = len(self.runs)
        self.runs.append(str(change))
        values = levels(1.9 if change.is_control else self.changed, seed, STEPS, 0.02)
        applied = {} if change.is_control else {"changes": {str(change): Applied(STEPS, "train.py:5")}}
        for n in range(1, STEPS + 1):
            now = replace(trace(**applied), curves={f"{LIVE}loss": Curve(np.arange(1.0, n + 1), values[:n])},
                          ended=False, exit_code=None, seconds=self.length * n / STEPS)
            if now.seconds > seconds:
                return replace(now, stopped="time")
            if enough(now):
                return replace(now, stopped="decided")
        return replace(now, ended=True, exit_code=0)


def prepared(change: Change, seed: int) -> Prepared:
    changes = [c for c in (change, Change("seed", {"by": seed}) if seed else Change()) if not c.is_control]
    return Prepared("python train.py", inside=tuple(changes))


def tried(place: Slow, seconds: float) -> Result:
    first = place.run(Prepared("python train.py"), lambda _: False, seconds=1000.0)
    place.runs.clear()
    engine = Engine(place, prepared, control=first)
    return engine.experiment(Change("no-decay"), Outcome("level"), budget=Budget(seconds))


def test_a_part_of_a_run_that_may_decide_is_made_with_what_is_left() -> None:
    """Seen: 3 controls and 1 changed run, and a budget of 300 s called spent under 249 s."""
    place = Slow(59.0, 0.05)
    found = tried(place, 210.0)
    assert (found.verdict.word, found.verdict.better) == ("moves", True)
    assert len(place.runs) == 4
    assert found.seconds <= 210.0


def test_a_change_without_an_effect_is_not_called_one_on_a_part_of_a_run() -> None:
    found = tried(Slow(59.0, 1.9), 210.0)
    assert not found.verdict.is_effect


@pytest.mark.parametrize("seconds", [100.0, 200.0])
def test_what_is_too_little_for_the_next_run_is_said_with_the_numbers(seconds: float) -> None:
    place = Slow(59.0, 0.05)
    found = tried(place, seconds)
    assert (found.verdict.word, found.verdict.lacks) == ("inconclusive", "budget")
    assert f"of {seconds:.0f} s) is too little" in found.verdict.why


def by_default(changed: float) -> Result:
    place = Slow(20.0, changed)
    first = place.run(Prepared("python train.py"), lambda _: False, seconds=1000.0)
    engine = Engine(place, prepared, control=first)
    purse = Budget(None, spent=45.0, length=20.0)  # 55 s are left of 100: two placebos and one run with the change
    return engine.experiment(Change("no-decay"), Outcome("level"), budget=purse, pilot=True)


def test_what_looks_promising_is_brought_to_its_end_beyond_a_default_budget() -> None:
    found = by_default(0.05)
    assert (found.verdict.word, found.verdict.better) == ("moves", True)
    assert 55.0 < found.seconds <= 105.0


def test_what_looks_no_better_gets_nothing_beyond_it() -> None:
    found = by_default(1.9)
    assert not found.verdict.is_effect
    assert found.seconds <= 55.0


def test_who_says_a_budget_gets_no_more_than_that() -> None:
    assert Budget(100.0, spent=90.0).to_end == 10.0
    assert Budget(None, spent=90.0, length=20.0).to_end == 60.0
