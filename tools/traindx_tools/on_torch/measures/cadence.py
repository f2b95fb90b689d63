"""Which steps are measured: the first ones all, later ones now and then, so that a long run costs almost nothing.

The always-on probes look every 25 or 50 steps: in the same ones, so that all others cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cadence:
    """Every step below `first`, then every `every`-th. Counted from 0."""

    first: int = 12
    every: int = 20

    def due(self, step: int) -> bool:
        """Whether this step is measured."""
        return step < self.first or step % self.every == 0
