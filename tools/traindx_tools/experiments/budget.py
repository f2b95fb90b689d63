"""How long an experiment may take: five minutes and five times the run's own length, whichever ends first.

Never less than a minute: starting Python and its frameworks takes as long as a short run. Who says a number of seconds
gets that. Runs that are taken from the cache cost nothing. An experiment whose first pair of runs differs for the
better is not dropped a run or two before its verdict: of a default budget half as much again may go into its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SECONDS = 300.0
TIMES_LENGTH = 5.0
LEAST_SECONDS = 60.0
RUNS_TO_DECIDE = 5.0
"""Three controls and two changed runs decide where the effect is large: what cannot be shortened gets a fifth."""
TO_SHOW = 0.4
"""Share of the budget in which the control has to show an event."""
TO_END = 0.5
"""Share of a default budget that an experiment may take beyond it, where its first pair of runs gives reason to."""
LONGER = 2.0
"""Times the known length of a run, that the next one may take: another load of the machine."""


@dataclass
class Budget:
    """`told`: the seconds that were asked for, None for the default."""

    told: float | None = None
    spent: float = 0.0
    length: float | None = field(default=None)
    """Seconds that the whole run takes, once a control has ended by itself."""

    @property
    def seconds(self) -> float:
        """All of it."""
        if self.told is not None:
            return self.told
        if self.length is None:
            return MOST_SECONDS
        return min(MOST_SECONDS, max(LEAST_SECONDS, TIMES_LENGTH * self.length))

    @property
    def left(self) -> float:
        """What is left of it."""
        return max(0.0, self.seconds - self.spent)

    @property
    def to_end(self) -> float:
        """What is left for the end of an experiment that has begun and is worth it."""
        more = 0.0 if self.told is not None else TO_END * self.seconds
        return max(0.0, self.seconds + more - self.spent)

    def for_first_control(self, *, event: bool) -> float:
        """Seconds in which the first control has to show what it is run for."""
        known = LONGER * self.length if self.length is not None else 0.0
        return max(1.0, min(self.left, max(known, self.left * (TO_SHOW if event else 1 / RUNS_TO_DECIDE))))
