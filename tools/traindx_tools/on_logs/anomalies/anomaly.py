"""One thing that stands out in a series."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

FALSE_ALARMS = 1e-3
"""Chance that a series without structure shows an anomaly of a kind, over its whole length (a union bound)."""


class Kind(str, Enum):
    """What an anomaly looks like."""

    SPIKE = "spike"
    """Leaves its surroundings and is back."""
    STEP = "step"
    """Goes to another level and stays."""
    DRIFT = "drift"
    """Moves one way, steadily, from beginning to end."""
    OSCILLATION = "oscillation"
    """Repeats with a period."""
    HALVED = "halved"
    """Powers of two that fall again and again, as a loss scale does that never fits."""
    FLAT = "flat"
    """The same value to the last digit, where values differ elsewhere."""
    COPIED = "copied"
    """A stretch that stands elsewhere as well, digit for digit."""
    IMPOSSIBLE = "impossible"
    """A value that the definition of the quantity excludes, or that is no number."""


@dataclass(frozen=True)
class Anomaly:
    """`start` and `end`: indices into the series, both inclusive. `up`: which way a spike, step or drift goes.

    `size` is in units of the kind: times the local scatter (spike, step), the whole change (drift), records a period
    (oscillation), halvings (halved), records (flat, copied), the value (impossible). `chance`: the most that chance
    gives anywhere in the series; 0 where a definition says it.
    """

    kind: Kind
    start: int
    end: int
    size: float
    chance: float
    up: bool = True
    of: int | None = None
    """Of a copied stretch: the index at which it stood first."""
