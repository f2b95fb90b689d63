"""Before anything is searched: does the bad run show the symptom, does the good one not, and do they always?"""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.experiments.isolating.oracle import Oracle, Trial
from traindx_tools.experiments.isolating.outcomes import Items, Shown
from traindx_tools.experiments.isolating.sequential import Rates, rates_of

FIRST_RUNS = 2
"""Of each control; where both runs of both agree, one run decides each question of the search."""
MORE_RUNS = 10
"""Of each control where they do not: enough to tell 0 of 10 from 6 of 10."""


@dataclass(frozen=True)
class Controls:
    """What the two ends showed. `problem`: why there is nothing to search, "" where there is."""

    good: tuple[Trial, ...]
    bad: tuple[Trial, ...]
    rates: Rates | None = None
    status: str = ""
    """"" or "not-bad", "both-bad", "reversed", "unresolved", "noise"."""
    problem: str = ""

    @property
    def noisy(self) -> bool:
        """The symptom comes in some of the runs only, and the two ends differ in how often."""
        return self.rates is not None


def run_controls(oracle: Oracle, good: Items, bad: Items, words: tuple[str, str] = ("good", "bad")) -> Controls:
    """Runs both ends. Leaves the rates of a symptom that comes and goes in the oracle. Raises OutOfRuns."""
    trials = oracle.trials(good, FIRST_RUNS), oracle.trials(bad, FIRST_RUNS)
    if all(len({t.shown for t in one}) == 1 for one in trials):
        return _steady(*trials, words)
    trials = oracle.trials(good, MORE_RUNS), oracle.trials(bad, MORE_RUNS)
    counted = _counted(trials[0]), _counted(trials[1])
    rates = rates_of(*counted) if all(sum(c) >= MORE_RUNS // 2 for c in counted) else None
    if rates is None:
        told = " and ".join(f"in {f} of {len(t)} {w} runs" for (f, _), t, w in
                            zip(counted, trials, words, strict=True))
        return Controls(*trials, status="noise", problem=(
            f"the symptom comes {told}: that is noise, and no difference between the two can be searched in it. Fix "
            "the seeds (`traindx isolate runs` says what makes equal runs differ), or give a condition that every "
            f"{words[1]} run meets"))
    oracle.rates = rates
    oracle.reset()
    return Controls(*trials, rates=rates)


def more_controls(oracle: Oracle, good: Items, bad: Items) -> Controls:
    """Runs both ends as often as it takes to tell their rates, where a run said otherwise than the same one before."""
    trials = oracle.trials(good, MORE_RUNS), oracle.trials(bad, MORE_RUNS)
    counted = _counted(trials[0]), _counted(trials[1])
    rates = rates_of(*counted)
    if rates is None:
        return Controls(*trials, status="noise", problem="the symptom comes and goes by itself: that is noise")
    oracle.rates = rates
    oracle.reset()
    return Controls(*trials, rates=rates)


def bad_alone(oracle: Oracle, bad: Items, word: str) -> Controls:
    """The control where there is no good run: `problem` where the bad one does not always show the symptom."""
    trials = oracle.trials(bad, FIRST_RUNS)
    shown = {t.shown for t in trials}
    if shown == {Shown.FAIL}:
        return Controls((), trials)
    status = {frozenset({Shown.PASS}): "not-bad", frozenset({Shown.UNRESOLVED}): "unresolved"}.get(
        frozenset(shown), "noise")
    said = "; ".join(dict.fromkeys(f"{t.shown.value}: {t.why}" for t in trials))
    return Controls((), trials, status=status, problem=f"the {word} run does not show the symptom each time ({said})")


def _counted(trials: tuple[Trial, ...]) -> tuple[int, int]:
    """How many failed and how many passed."""
    return sum(t.shown is Shown.FAIL for t in trials), sum(t.shown is Shown.PASS for t in trials)


def _steady(good: tuple[Trial, ...], bad: tuple[Trial, ...], words: tuple[str, str]) -> Controls:
    ends = good[0].shown, bad[0].shown
    if ends == (Shown.PASS, Shown.FAIL):
        return Controls(good, bad)
    status, problem = _unsearchable(ends, good[0].why, bad[0].why, words)
    return Controls(good, bad, status=status, problem=problem)


def _unsearchable(ends: tuple[Shown, Shown], good: str, bad: str, words: tuple[str, str]) -> tuple[str, str]:
    if Shown.UNRESOLVED in ends:
        which, why = (words[1], bad) if ends[1] is Shown.UNRESOLVED else (words[0], good)
        return "unresolved", (f"the {which} run says neither that the symptom is there nor that it is not: {why}. Both "
                              "ends have to run here before anything between them can be searched")
    if ends == (Shown.PASS, Shown.PASS):
        return "not-bad", (f"the {words[1]} run does not show the symptom here ({bad}): either the condition of "
                           "--fails-if is another than what was seen, or what brings it is not among these differences "
                           "(data, versions, machine, length of the run)")
    if ends == (Shown.FAIL, Shown.FAIL):
        return "both-bad", (f"the {words[0]} run shows the symptom too ({good}): what brings it is none of these "
                            "differences")
    return "reversed", (f"the {words[0]} run shows the symptom ({good}) and the {words[1]} one does not: they were "
                        "given the other way round")
