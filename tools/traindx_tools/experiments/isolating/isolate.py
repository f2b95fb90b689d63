"""The whole of an isolation: controls, search, and the answer held against the runs that decide it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.experiments.isolating.bisection import first_bad
from traindx_tools.experiments.isolating.bounds import fewest_runs
from traindx_tools.experiments.isolating.controls import Controls, bad_alone, more_controls, run_controls
from traindx_tools.experiments.isolating.every import every_cause, healthy_part
from traindx_tools.experiments.isolating.oracle import Oracle
from traindx_tools.experiments.isolating.outcomes import Items, OutOfRuns, Shown

FOUND, EQUAL, UNDECIDED = 1, 0, 3
"""Exit codes: the difference was found; the bad run is not bad here; nothing could be decided."""


@dataclass(frozen=True)
class Isolated:
    """The answer of an isolation.

    `causes`: each a smallest set of differences (numbers of the space) with which the good run shows the symptom.
    """

    status: str
    """"found", "range" (commits between which it came, that cannot be tested), "unfinished", "not-bad", "both-bad",
    "reversed", "unresolved", "noise", "no-difference", "nothing-to-try" (what differs cannot be changed here)."""
    labels: tuple[str, ...]
    """What each difference is, by its number."""
    causes: tuple[tuple[int, ...], ...] = ()
    without: Shown | None = None
    """What the bad run without all causes shows: PASS where these are all, None where it was not asked."""
    problem: str = ""
    runs: int = 0
    known: int = 0
    """Runs of before whose outcome was kept."""
    bound: int = 0
    """Runs that no search can do without, controls not counted."""
    controls: Controls | None = None
    left: tuple[int, ...] = ()
    """Of a search that did not end: the smallest set that was seen to fail."""
    asked: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    """Every set that was decided: how many differences it had, what it showed, why, seconds, runs."""

    @property
    def exit_code(self) -> int:
        """As documented for `traindx isolate`."""
        if self.status in ("found", "range"):
            return FOUND
        return EQUAL if self.status in ("not-bad", "no-difference") else UNDECIDED

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The causes by their labels."""
        return tuple(tuple(self.labels[i] for i in cause) for cause in self.causes)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        told = None if self.controls is None else {
            end: [{"shown": t.shown.value, "why": t.why, "seconds": round(t.seconds, 2)} for t in trials]
            for end, trials in (("good", self.controls.good), ("bad", self.controls.bad))}
        return {"status": self.status, "causes": [list(c) for c in self.named], "differences": len(self.labels),
                "without_them": None if self.without is None else self.without.value, "problem": self.problem,
                "runs": self.runs, "known_runs": self.known, "fewest_runs": self.bound,
                "noisy": bool(self.controls and self.controls.noisy), "controls": told,
                "left": [self.labels[i] for i in self.left], "asked": list(self.asked)}


def isolate(labels: Sequence[str], oracle: Oracle, *, only_left_out: bool = False,
            words: tuple[str, str] = ("good", "bad")) -> Isolated:
    """The smallest sets of differences that make the symptom come.

    `only_left_out`: there is no good run; items can only be left out of the bad one, and a part of them that passes by
    itself takes its place.
    """
    return _Isolation(tuple(labels), oracle, words).among(only_left_out)


def isolate_turn(labels: Sequence[str], oracle: Oracle, words: tuple[str, str] = ("good", "bad")) -> Isolated:
    """The place in an ordered list at which the symptom came; `labels[i]` leads from state i to state i + 1.

    The oracle is asked for states: the first i differences applied.
    """
    return _Isolation(tuple(labels), oracle, words).turn()


class _Isolation:
    def __init__(self, labels: tuple[str, ...], oracle: Oracle, words: tuple[str, str]) -> None:
        self.labels, self.oracle, self.words = labels, oracle, words
        self.all: Items = frozenset(range(len(labels)))
        self.controls: Controls | None = None

    def among(self, only_left_out: bool) -> Isolated:
        """See `isolate`."""
        return self._guarded(lambda: self._left_out() if only_left_out else self._between())

    def turn(self) -> Isolated:
        """See `isolate_turn`."""
        return self._guarded(self._turned)

    def _guarded(self, search: Callable[[], Isolated]) -> Isolated:
        if not self.labels:
            return self._result("no-difference", problem="the two do not differ in anything that can be changed here")
        try:
            return search()
        except OutOfRuns as error:
            left = tuple(sorted(self._smallest()))
            return self._result("unfinished", left=left, problem=(
                f"{error}. The symptom comes with {len(left)} of the {len(self.labels)} differences; the same command "
                "with a larger --budget goes on from here"))

    def _between(self) -> Isolated:
        self.controls = controls = run_controls(self.oracle, frozenset(), self.all, self.words)
        if controls.status:
            return self._result(controls.status, problem=controls.problem)
        return self._searched(frozenset())

    def _left_out(self) -> Isolated:
        self.controls = alone = bad_alone(self.oracle, self.all, self.words[1])
        if alone.status:
            return self._result(alone.status, problem=alone.problem)
        part = healthy_part(range(len(self.labels)), self.oracle)
        if part is None:
            return self._result("both-bad", problem="the symptom comes with every part that was tried by itself: what "
                                                    "brings it lies in all of them or in none")
        self.controls = run_controls(self.oracle, part, self.all, ("remaining", self.words[1]))
        if self.controls.status:
            return self._result(self.controls.status, problem=self.controls.problem)
        return self._searched(part)

    def _searched(self, context: Items) -> Isolated:
        causes = every_cause([i for i in sorted(self.all) if i not in context], self.oracle, context)
        found = {i for c in causes.found for i in c}
        unstable = self._unstable({context.union(c): Shown.FAIL for c in causes.found}
                                  | {self.all - found: causes.rest})
        if unstable:
            return self._anew(context, unstable, lambda: self._searched(context))
        bound = fewest_runs(len(self.labels), len(found))
        return self._result("found", causes.found, without=causes.rest, bound=bound)

    def _unstable(self, deciding: Mapping[Items, Shown]) -> str:
        """What a second run of the deciding sets says otherwise, "" where it agrees."""
        if self.oracle.rates is not None:
            return ""
        for part, first in deciding.items():
            again = self.oracle.trials(part, 2)[1].shown
            if again is not first and Shown.UNRESOLVED not in (again, first):
                return f"one set of {len(part)} differences showed {first.value} and, run again, {again.value}"
        return ""

    def _anew(self, good: Items, unstable: str, search: Callable[[], Isolated]) -> Isolated:
        """The search with rates: the symptom comes and goes."""
        self.controls = more_controls(self.oracle, good, self.all)
        if self.controls.status:
            return self._result("noise", problem=f"{unstable}; {self.controls.problem}")
        return search()

    def _turned(self) -> Isolated:
        self.controls = run_controls(self.oracle, frozenset(), self.all, self.words)
        if self.controls.status:
            return self._result(self.controls.status, problem=self.controls.problem)
        return self._bisected()

    def _bisected(self) -> Isolated:
        count = len(self.labels)
        turn = first_bad(count + 1, lambda at: self.oracle(frozenset(range(at))))
        unstable = self._unstable({frozenset(range(turn.last_good)): Shown.PASS,
                                   frozenset(range(turn.first_bad)): Shown.FAIL})
        if unstable:
            return self._anew(frozenset(), unstable, self._bisected)
        cause = tuple(range(turn.last_good, turn.first_bad))
        problem = "" if turn.exact else f"the {len(turn.untested)} between them could not be tested"
        return self._result("found" if turn.exact else "range", (cause,), bound=fewest_runs(count), problem=problem)

    def _smallest(self) -> Items:
        failing = [a.part for a in self.oracle.asked if a.shown is Shown.FAIL]
        return min(failing, key=len, default=self.all)

    def _result(self, status: str, causes: tuple[tuple[int, ...], ...] = (), *, without: Shown | None = None,
                problem: str = "", bound: int = 0, left: tuple[int, ...] = ()) -> Isolated:
        asked = tuple({"differences": len(a.part), "shown": a.shown.value, "why": a.trials[-1].why,
                       "runs": len(a.trials), "seconds": round(sum(t.seconds for t in a.trials), 2)}
                      for a in self.oracle.asked)
        return Isolated(status, self.labels, causes, without, problem, self.oracle.runs, self.oracle.known, bound,
                        self.controls, left, asked)
