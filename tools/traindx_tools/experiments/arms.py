"""The runs of an experiment: controls and runs with the change, each with the seed that it was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.trace import Trace

MOST_REPEATS = 5


@dataclass(frozen=True)
class Design:
    """What is asked: one change, one outcome, at most so many runs of either arm."""

    change: Change
    outcome: Outcome
    repeats: int = MOST_REPEATS
    least: float = 0.0
    """Steps before which the effect of the change cannot be judged."""
    pilot: bool = False
    """Whether a first run with the change that is no better than the first control ends it: one of many questions."""
    first_seed: int = 0
    """The seed that runs begin with. What was chosen among many by its run with the program's own seed is tried with
    others: the luck that chose it is not in them."""


@dataclass(frozen=True)
class Run:
    """One run. `seed` 0 is the program's own; another number is a placebo: a change that is nothing but a seed."""

    changed: bool
    seed: int
    trace: Trace

    @property
    def name(self) -> str:
        """For a person."""
        arm = "changed" if self.changed else "control"
        return f"{arm}, own seed" if self.seed == 0 else f"{arm}, seed {self.seed}"


@dataclass(frozen=True)
class Next:
    """The run that is wanted next, and how far: the step (the record, the second), None for as far as it shows."""

    changed: bool
    seed: int
    horizon: float | None = None
    unit: str = "step"

    @property
    def name(self) -> str:
        """For a person."""
        arm = "changed" if self.changed else "control"
        return f"{arm}, own seed" if self.seed == 0 else f"{arm}, seed {self.seed}"


ORDER = ((False, 0), (True, 0), (False, 1), (False, 2), (True, 1), (True, 2), (False, 3), (True, 3), (False, 4),
         (True, 4))  # fmt: skip
"""(changed, seed): a change without any effect is seen in the first pair; the spread of the controls comes next."""


def controls(runs: Iterable[Run]) -> list[Run]:
    """By seed."""
    return sorted((r for r in runs if not r.changed), key=lambda r: r.seed)


def changes(runs: Iterable[Run]) -> list[Run]:
    """By seed."""
    return sorted((r for r in runs if r.changed), key=lambda r: r.seed)


def wanted(design: Design, runs: Sequence[Run]) -> tuple[bool, int] | None:
    """The first of the order that was not run; None where all were."""
    done = {(r.changed, r.seed) for r in runs}
    order = ((changed, design.first_seed + seed) for changed, seed in ORDER if seed < design.repeats)
    return next((o for o in order if o not in done), None)


def hindered(design: Design, runs: Sequence[Run]) -> str:
    """Why runs with the change say nothing of it, "" where they do."""
    for run in changes(runs):
        applied = run.trace.applied
        if not applied.times and (run.trace.ended or run.trace.stopped):
            return f"the change took hold nowhere: {applied.problem or 'nothing that it changes was used'}"
    own = next((r.trace.broke for r in changes(runs) if r.trace.broke), "")
    if own and design.outcome.kind not in ("error", "exit") and not any(r.trace.broke for r in controls(runs)):
        return f"the change brings an error of its own, so that nothing can be compared: {own}"
    return ""
