"""Which steps are measured: the first ones all, later ones now and then, so that a long run costs almost nothing.

The always-on probes look every 25 or 50 steps, after `SETTLED` steps every 100 or 200: in the same ones, so that all
others cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SETTLED, SPARSER = 500, 4
"""Steps after which the interval is so many times as long."""


@dataclass(frozen=True)
class Cadence:
    """Every step below `first`, then every `every`-th. Counted from 0. `thins`: more seldom from `SETTLED` on."""

    first: int = 12
    every: int = 20
    thins: bool = False

    def due(self, step: int) -> bool:
        """Whether this step is measured."""
        return step < self.first or step % self._interval(step) == 0

    def next_due(self, step: int) -> int:
        """The first step from this one on that is measured."""
        if self.due(step):
            return step
        interval = self._interval(step)
        following = (step // interval + 1) * interval
        return following if interval == self._interval(following) else self.next_due(SETTLED)

    def _interval(self, step: int) -> int:
        return self.every * SPARSER if self.thins and step >= SETTLED else self.every

    @classmethod
    def chosen(cls, options: Mapping[str, Any], probe: str, first: int, every: int) -> Cadence:
        """The cadence of an always-on probe; what the options `<probe>_first` and `<probe>_every` say is kept to."""
        named = f"{probe}_every" in options
        return cls(int(options.get(f"{probe}_first", first)), int(options.get(f"{probe}_every", every)), not named)
