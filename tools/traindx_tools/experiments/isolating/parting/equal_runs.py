"""The same command several times: where the runs part, and which remedies make them equal, alone or together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.experiments.isolating.minimise import ddmin
from traindx_tools.experiments.isolating.outcomes import Items, OutOfRuns, Shown
from traindx_tools.experiments.isolating.parting.compare import Parting, parting
from traindx_tools.experiments.isolating.parting.outputs import output_parts
from traindx_tools.experiments.isolating.parting.recording import Recording
from traindx_tools.experiments.isolating.parting.remedies import REMEDIES, order_for

FIRST_RUNS = 4
"""Of the command as it is, at most: equal three times over, runs that part half of the time were missed in 1 of 8."""
MOST_RUNS = 8
"""With one set of remedies."""
MISSED = 0.05
"""Probability with which runs that part as often as without a remedy may all have been equal by chance."""


@dataclass(frozen=True)
class Ran:
    """One run: recordings by rank, what it printed, and why it says nothing ("" where it does)."""

    recordings: Mapping[int, Recording]
    output: str
    problem: str = ""
    applied: Mapping[str, Any] = field(default_factory=dict)
    """What the changes of the remedies did: `times` and `problem` by their text."""


Run = Callable[[Items, int], Ran]
"""Runs with these remedies; the number tells repeated runs apart. Raises OutOfRuns."""


@dataclass(frozen=True)
class Arm:
    """Runs with one set of remedies: where two of them parted first, None where all were equal."""

    remedies: tuple[str, ...]
    runs: int
    parting: Parting | None
    problem: str = ""

    @property
    def equal(self) -> bool:
        """All runs were."""
        return self.parting is None and not self.problem

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"remedies": list(self.remedies), "runs": self.runs, "equal": self.equal, "problem": self.problem,
                "parting": self.parting.to_json() if self.parting else None}


@dataclass(frozen=True)
class EqualRuns:
    """The answer. `removing`: the smallest sets of remedies with which all runs were equal."""

    status: str
    """"equal", "parts", "unresolved", "unfinished"."""
    parting: Parting | None
    arms: tuple[Arm, ...]
    removing: tuple[tuple[str, ...], ...] = ()
    problem: str = ""
    steps: int = 0
    """Steps that were recorded."""

    @property
    def exit_code(self) -> int:
        """0 equal, 1 they part, 3 nothing could be told."""
        return {"equal": 0, "parts": 1}.get(self.status, 3)

    @property
    def runs(self) -> int:
        """All runs."""
        return sum(a.runs for a in self.arms)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"status": self.status, "parting": self.parting.to_json() if self.parting else None,
                "removing": [list(r) for r in self.removing], "arms": [a.to_json() for a in self.arms],
                "runs": self.runs, "steps": self.steps, "problem": self.problem}


def compare_runs(run: Run, told: Callable[[Arm], None] = lambda arm: None) -> EqualRuns:
    """Runs until two part, then with each remedy, and with all of them together where none alone is enough."""
    search = _Search(run, told)
    try:
        return search.whole()
    except OutOfRuns as error:
        first = search.arms[0].parting if search.arms else None
        return search.result("parts" if first else "unfinished", first, problem=f"{error}: not every remedy was tried")


class _Search:
    def __init__(self, run: Run, told: Callable[[Arm], None]) -> None:
        self._run, self._told = run, told
        self.arms: list[Arm] = []
        self.steps = 0

    def whole(self) -> EqualRuns:
        """See `compare_runs`."""
        base = self._arm(frozenset(), FIRST_RUNS)
        if base.problem:
            return self.result("unresolved", None, problem=base.problem)
        if base.parting is None:
            return self.result("equal", None)
        most = _runs_needed(base.runs)
        order = order_for(base.parting.origin)
        alone = [i for i in order if self._arm(frozenset({i}), most).equal]
        if alone:
            return self.result("parts", base.parting, removing=[frozenset({i}) for i in alone])
        every = frozenset(order)
        if not self._arm(every, most).equal:
            return self.result("parts", base.parting)
        known: dict[Items, Shown] = {every: Shown.FAIL}

        def shown(part: Any) -> Shown:
            items = frozenset(part)
            if len(items) < 2:
                return Shown.PASS  # each was tried alone
            if items not in known:
                known[items] = Shown.FAIL if self._arm(items, most).equal else Shown.PASS
            return known[items]

        return self.result("parts", base.parting, removing=[frozenset(ddmin(order, shown))])

    def _arm(self, part: Items, most: int) -> Arm:
        arm = self._compared(part, most)
        self.arms.append(arm)
        self._told(arm)
        return arm

    def _compared(self, part: Items, most: int) -> Arm:
        names = _names(part)
        first = self._run(part, 0)
        if first.problem:
            return Arm(names, 1, None, first.problem)
        nowhere = next((str(a["problem"]) for a in first.applied.values() if a.get("problem")), "")
        if nowhere and len(part) == 1:
            return Arm(names, 1, None, f"it changes nothing: {nowhere}")
        self.steps = max([self.steps, *(r.steps for r in first.recordings.values())])
        for number in range(1, most):
            other = self._run(part, number)
            if other.problem:
                return Arm(names, number + 1, None, other.problem)
            found = parting(first.recordings, other.recordings) or output_parts(first.output, other.output)
            if found is not None:
                return Arm(names, number + 1, found)
        return Arm(names, most, None)

    def result(self, status: str, found: Parting | None, *, removing: list[Items] | None = None,
               problem: str = "") -> EqualRuns:
        """The answer as far as it is known."""
        return EqualRuns(status, found, tuple(self.arms), tuple(_names(r) for r in removing or ()), problem, self.steps)


def _names(part: Items) -> tuple[str, ...]:
    return tuple(REMEDIES[i].name for i in sorted(part))


def _runs_needed(runs: int) -> int:
    """Runs that must all be equal: the control parted in the last of `runs` - 1 comparisons, so that a comparison parts
    with a probability of about 1.5 in `runs` (Jeffreys); n equal ones by chance are then rarer than MISSED."""
    parts = 1.5 / runs
    return min(MOST_RUNS, max(3, 1 + math.ceil(math.log(MISSED) / math.log(1 - parts))))
