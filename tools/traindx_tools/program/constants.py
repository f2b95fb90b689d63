"""Numbers that a program gives to what it makes and calls, and operations at points where they have no value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from traindx_tools.program.known import Known
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

    @property
    def last(self) -> int:
        """The highest number that chooses a row."""
        return self.rows - 1

    @property
    def is_beyond(self) -> bool:
        """Whether a number chooses no row."""
        return self.high > self.last or self.low < -self.rows


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

    @property
    def off(self) -> float:
        """By which share its length differs from how often it would be asked by the other count."""
        counts = self.length if self.per_window else self.length * self.every
        return abs(counts - self.rounds) / self.rounds if self.rounds else inf


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


@dataclass(frozen=True)
class ScheduleUse:
    """One place at which a learning-rate schedule is stepped in a loop that trains."""

    kind: str
    at: Any
    made: Any
    once_a: str
    """"batch" (at every step of the optimizer), "pass" (at some of them), "epoch" (outside of the loop that
    steps), "never"."""
    passes: tuple[float | None, ...] = ()
    """Turns of the loops around the one that steps the optimizer, outermost first."""
    length: str = ""
    """Its length as it is written."""
    counts: str = ""
    """What that counts: "passes", "batches of a pass", "batches"."""
    last: float | None = None
    """The step of its own at which its last decay happens."""
    factor: float | None = None
    """By which the rate is multiplied at each of its steps."""
    steps: float | None = None
    """Turns of all loops around, where unknown ones count 1000; None of a single one that is unknown."""
    before: Any = None
    """Where the optimizer steps later in the same turn (`moments.Spot`)."""
    few: bool = False
    """The loop that steps has a handful of turns only."""
    loaded: Any = None
    """Where the optimizer's state was loaded before the schedule was built, whose own state is not."""
    asked: bool = False
    """The optimizer asks it at each update, as in optax."""
    every: float | None = None
    """Of a length in batches: how many there are to each step; a fraction of one in windows stepped at each batch."""
    processes: Known | None = None
    """It is stepped once for each process, and its length counts the batches of one; guessed where nothing in the text
    starts several processes."""

    @property
    def around(self) -> float | None:
        """Turns of the loop around the one that steps the optimizer."""
        return self.passes[-1] if self.passes else None

    @property
    def epochs(self) -> float | None:
        """The outermost number of turns that is known."""
        return next((n for n in self.passes if n is not None), None)

    @property
    def batches(self) -> float:
        """In windows stepped at each batch: how long they are."""
        return 1 / (self.every or inf)

    @property
    def decays_early(self) -> bool:
        """Its last decay is a number of epochs that the loops have."""
        return self.last is not None and self.epochs is not None and 1 < self.last < self.epochs

    @property
    def left(self) -> float | None:
        """The share of the rate that its factor leaves at the end."""
        return self.factor**self.steps if self.factor is not None and self.steps is not None else None

    @property
    def after_1000(self) -> float | None:
        """The share that it leaves after 1000 steps."""
        return self.factor**1000 if self.factor is not None else None


@dataclass(frozen=True)
class RateProduct:
    """A learning rate that is multiplied into itself and kept."""

    at: Any
    text: str
    rate: str
    by_counter: bool
    """The factor depends on a counter of a loop; else it is applied in every training step."""


@dataclass(frozen=True)
class Pole:
    """An operation whose argument reaches 0. `kind`: "log", "sqrt", "division" (by a
    spread), "count" (a division by one) or "where" (a branch not selected)."""

    kind: str
    text: str
    at: Spot
    low: float = 0.0
    high: float | None = None
    of: str = ""
    """What gives the argument: "softmax", "sigmoid", or "" for any other expression."""
    made: str = ""
    attached: bool | None = True
    """Whether a gradient goes through it; None where that is not known."""
    spread: bool = False
    """Whether it is a variance or standard deviation."""
    dtype: str = "float32"
    guard: str = ""
    """What was written to keep it away from there, and does not."""
    why: str = ""
    """Why the guard does not."""
    origin: Any = None

    @property
    def in_graph(self) -> bool:
        """Whether a gradient certainly goes through it."""
        return self.attached is True


@dataclass(frozen=True)
class Rounded:
    """A small number that its dtype does not hold. `kind`: "clamp", "addition" or "adam eps"."""

    kind: str
    text: str
    at: Spot
    value: float
    dtype: str


@dataclass(frozen=True)
class HalfUpdate:
    """An optimizer that updates parameters in a half type, without copies in float32."""

    optimizer: str
    at: Spot
    cast: Spot
    dtype: str
    rate: float | None
    eps: float | None
