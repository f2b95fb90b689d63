"""What the numbers of one shape of line mean: its metrics, its counters, and the plan while it is being made."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.on_logs.readers.names import Name
from traindx_tools.on_logs.readers.recorder import Key


@dataclass(frozen=True)
class Field:
    """One metric of a shape: which token holds it and what it is called."""

    token: int
    key: Key
    factor: float = 1.0
    over: int | None = None
    """The token by which the value is divided: "9850/10000" of an accuracy."""
    average: int | None = None
    """The token of its mean so far, in brackets behind it."""
    tentative: bool = False
    """Taken for a metric only if it recurs with other values."""


@dataclass(frozen=True)
class Counter:
    """One counter of a shape: the token, and the token with the planned end."""

    token: int
    total: int | None
    sureness: int
    word: str = ""
    """What it is called."""
    scales: tuple[float, float] = (1.0, 1.0)
    """What the number and the planned end are times: 1,000 for "12k", twice that for "12k/40k"."""


@dataclass(frozen=True)
class Plan:
    """What the numbers of one shape of line mean."""

    fields: tuple[Field, ...] = ()
    step: Counter | None = None
    epoch: Counter | None = None
    rank: int | None = None
    bar: str = ""
    """"tqdm", "keras", "meter" or "" where the line draws no bar."""
    leftover: int = 0
    """Words that are neither a name nor a unit."""
    plain: bool = True
    """Nothing is written before a bar."""

    @property
    def rounded(self) -> bool:
        """Whether the planned end of its steps is written in thousands: bytes of a download, as well as steps."""
        return self.step is not None and self.step.scales[1] != 1.0

    @property
    def header(self) -> bool:
        """A line that only says where the following ones stand."""
        return not self.fields and not self.bar and bool(self.step or self.epoch) and self.leftover <= 3


NOTHING = Plan()


@dataclass
class Draft:
    """A plan in the making, with what the text so far has said."""

    items: list[tuple[Field, Name, bool]] = field(default_factory=list)
    steps: list[Counter] = field(default_factory=list)
    epochs: list[Counter] = field(default_factory=list)
    bare: list[Counter] = field(default_factory=list)
    rank: int | None = None
    scales: tuple[float, float] = (1.0, 1.0)
    """What stands behind the number that is read, and behind its planned end: k, M, G."""
    leftover: int = 0
    group: str | None = None
    stem: str = ""
    family: str = ""
    """What the names without one of their own belong to: the "grad norms" of several modules."""
    vector: int = -1
    """The item whose name stands for several values, one a layer: "grad norms: 0.1 0.2 0.3"; -1 for none."""
    described: bool = False
    """A bar with words before it: what it counts may be anything."""
    parts: list[str] = field(default_factory=list)
    spoken_of: str | None = None
    """The group whose loss stands right before: "val: 0.55 (acc 0.88)"."""
    of_groups: str = ""
    """The metric whose value of one group stands right before: "c-index train 0.39 test 0.37"."""
    announced: str = ""
    """The metric that is written once before its groups: "acc: train 0.5 val 0.6"."""
    groups_of: frozenset[str] = frozenset()
    """The groups whose value of the announced metric was met."""
