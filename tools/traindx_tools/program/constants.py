"""Numbers that a program gives to what it makes and calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class Constants:
    """The numbers of one call, by the names of its arguments."""

    of: str
    """What is called or made, by its last name; what is written for "bias of every layer" and the like."""
    text: str
    at: Spot
    numbers: Mapping[str, float] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    """The arguments whose number is a default that may be overridden."""
    circumstances: frozenset[str] = frozenset()
    """What else is known of the place, in the words of the table of ranges."""
    origin: Any = None


@dataclass(frozen=True)
class Indexing:
    """Numbers that choose rows of a table or classes: how many there are, and how far the numbers reach."""

    kind: str
    """"table", "classes", or "ignored": labels that the loss at `made` leaves out, of which the lowest is `low`."""
    rows: int
    low: float
    high: float
    text: str
    at: Spot
    made: str = "?"
    """Where the numbers are made."""


@dataclass(frozen=True)
class Window:
    """A schedule inside an optimizer that collects gradients: how long it is, and how often it is asked."""

    schedule: str
    at: Spot
    length: float
    rounds: float
    """How often the loops of the program call the optimizer."""
    every: float
    by: str
    """What collects."""
    per_window: bool
    """Whether the schedule is asked once for each window; else at every call."""


@dataclass(frozen=True)
class HookedSchedule:
    """A schedule that a framework steps: `unit`: what its length counts, "steps" or "epochs"."""

    kind: str
    at: Spot
    unit: str
    by_step: bool
    told: bool
    """Whether the program says how often it is stepped."""


@dataclass(frozen=True)
class TextSwitch:
    """A text that is made a truth value as it is. `says_off`: its default is a text such as "False"; `on`: it is on."""

    text: str
    at: Spot
    says_off: bool
    on: bool
