"""Of a symptom that comes in some runs: how many more it takes to say which of two rates a set of runs has.

Wald's sequential probability ratio test (1945) between the rate of the good control and that of the bad one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log

ERROR = 0.01
"""Probability of a wrong answer to one question, either way; a search asks about ten."""
MOST_RUNS = 24
"""Of one set of differences; undecided by then, it counts as unresolved."""
APART = 0.01
"""One-sided p-value from which two controls differ (Fisher's exact test)."""


@dataclass(frozen=True)
class Rates:
    """How often the symptom comes in the good and in the bad control, each strictly between 0 and 1."""

    good: float
    bad: float

    def decided(self, failed: int, passed: int) -> bool | None:
        """True: as often as in the bad one, False: as in the good one, None: another run is needed."""
        ratio = failed * log(self.bad / self.good) + passed * log((1 - self.bad) / (1 - self.good))
        bound = log((1 - ERROR) / ERROR)
        return True if ratio >= bound else False if ratio <= -bound else None


def rates_of(good: tuple[int, int], bad: tuple[int, int]) -> Rates | None:
    """The rates behind (failed, passed) of each control, None where they cannot be told apart.

    A rate that was 0 of n or n of n is taken half a run away from there (Jeffreys' prior).
    """
    if fisher(good, bad) > APART:
        return None
    smoothed = [(failed + 0.5) / (failed + passed + 1) for failed, passed in (good, bad)]
    return Rates(*smoothed)


def fisher(good: tuple[int, int], bad: tuple[int, int]) -> float:
    """The probability that the bad control fails at least so much more often by chance alone."""
    failed, runs_bad, runs = good[0] + bad[0], sum(bad), sum(good) + sum(bad)
    ways = [comb(failed, k) * comb(runs - failed, runs_bad - k) for k in range(min(failed, runs_bad) + 1)
            if runs_bad - k <= runs - failed]
    first = max(0, runs_bad - (runs - failed))
    return sum(w for k, w in enumerate(ways, first) if k >= bad[0]) / comb(runs, runs_bad)
