"""Asks runs what they show and remembers: each set of differences is decided once, by as many runs as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from traindx_tools.experiments.isolating.outcomes import Items, OutOfRuns, Shown
from traindx_tools.experiments.isolating.sequential import MOST_RUNS, Rates


@dataclass(frozen=True)
class Trial:
    """One run. `why`: what it showed, in words."""

    shown: Shown
    why: str = ""
    seconds: float = 0.0


OneRun = Callable[[Items, int], Trial]
"""Runs once with these differences. The number tells repeated runs of one set apart, from 0."""


@dataclass(frozen=True)
class Budget:
    """`runs`: how many may be started; `seconds`: after that no further one is."""

    runs: int = 200
    seconds: float = float("inf")


@dataclass
class Asked:
    """One set of differences that was decided, and the runs that it took."""

    part: Items
    shown: Shown
    trials: list[Trial] = field(default_factory=list)


class Oracle:
    """The test of a search; see `outcomes.Test`."""

    def __init__(self, one_run: OneRun, budget: Budget | None = None,
                 told: Callable[[Asked], None] = lambda asked: None,
                 kept: Callable[[Items, int], Trial | None] = lambda part, number: None) -> None:
        """`kept`: the outcome of a run of before, which costs no budget; `told`: hears of each set that is decided."""
        self._one_run, self._told, self._kept = one_run, told, kept
        self._budget = budget or Budget()
        self._started = time.monotonic()
        self._trials: dict[Items, list[Trial]] = {}
        self._decided: dict[Items, Asked] = {}
        self.rates: Rates | None = None
        """Set where the symptom comes in some runs only: then one run decides nothing."""
        self.runs = self.known = 0

    @property
    def asked(self) -> tuple[Asked, ...]:
        """What was decided, in the order in which it was."""
        return tuple(self._decided.values())

    def __call__(self, part: Items) -> Shown:
        """Raises OutOfRuns where the budget is spent."""
        if part not in self._decided:
            shown = self._by_one(part) if self.rates is None else self._by_many(part, self.rates)
            self._decided[part] = asked = Asked(part, shown, self._trials[part])
            self._told(asked)
        return self._decided[part].shown

    def trials(self, part: Items, count: int) -> tuple[Trial, ...]:
        """The first so many runs of a set, run now where they were not before. Raises OutOfRuns."""
        held = self._trials.setdefault(part, [])
        while len(held) < count:
            held.append(self._run(part, len(held)))
        return tuple(held[:count])

    def reset(self) -> None:
        """Decides anew from here on, from the runs that were made and more."""
        self._decided.clear()

    def _by_one(self, part: Items) -> Shown:
        return self.trials(part, 1)[0].shown

    def _by_many(self, part: Items, rates: Rates) -> Shown:
        for count in range(1, MOST_RUNS + 1):
            shown = [t.shown for t in self.trials(part, count)]
            if shown.count(Shown.UNRESOLVED) > 1:
                return Shown.UNRESOLVED
            told = rates.decided(shown.count(Shown.FAIL), shown.count(Shown.PASS))
            if told is not None:
                return Shown.FAIL if told else Shown.PASS
        return Shown.UNRESOLVED

    def _run(self, part: Items, number: int) -> Trial:
        before = self._kept(part, number)
        if before is not None:
            self.known += 1
            return before
        if self.runs >= self._budget.runs:
            raise OutOfRuns(f"{self.runs} runs were made, as many as were allowed")
        if time.monotonic() - self._started >= self._budget.seconds:
            raise OutOfRuns(f"the time of {self._budget.seconds:g} s is over")
        self.runs += 1
        return self._one_run(part, number)
