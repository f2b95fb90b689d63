"""What the log of one rank tells, in a few kilobytes whatever its length: the value that readers fill and rules judge.

A job of 4,096 ranks is 4,096 of these in one process, so that every list here has a bound.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field

MOST_KEPT = 128
"""Values of one series; of a longer one those at steps that a power of two divides, the same on every rank."""
MOST_OPERATIONS = 256
"""Last collectives of one group: ranks that part hang a few operations later."""
MOST_FAULTS, MOST_WAITS, MOST_SETTINGS, MOST_COUNTS, MOST_EVENTS = 12, 6, 160, 40, 96
LONGEST = 300
"""Characters of a line that is quoted."""


@dataclass(slots=True)
class Thin:
    """One metric by step. `stride` doubles when there are too many: what stays lies at the same steps on all ranks."""

    steps: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("f"))
    stride: int = 1
    total: float = 0.0
    count: int = 0

    def keep(self, step: float, value: float) -> None:
        """Keeps a finite value of a step that `stride` divides; whoever reads has counted it."""
        self.steps.append(step)
        self.values.append(value)
        if len(self.steps) > MOST_KEPT:
            self.stride *= 2
            kept = [i for i, s in enumerate(self.steps) if not s % self.stride]
            self.steps = array("d", (self.steps[i] for i in kept))
            self.values = array("f", (self.values[i] for i in kept))


@dataclass(frozen=True, slots=True)
class Operation:
    """A collective as a rank names it. `shape`: elements or sizes as written, "" where the log tells none."""

    name: str
    shape: str = ""

    def __str__(self) -> str:
        return f"{self.name} of {self.shape}" if self.shape else self.name


@dataclass(slots=True)
class Operations:
    """The last collectives of one process group: sequence numbers and what was called."""

    numbers: array[int] = field(default_factory=lambda: array("q"))
    which: array[int] = field(default_factory=lambda: array("H"))
    names: list[Operation] = field(default_factory=list)

    def add(self, number: int, operation: Operation) -> None:
        """Takes one; the same number again (start and end of it) counts once."""
        if self.numbers and self.numbers[-1] == number:
            return
        if operation not in self.names:
            if len(self.names) > 2_000:
                return
            self.names.append(operation)
        self.numbers.append(number)
        self.which.append(self.names.index(operation))
        if len(self.numbers) > 2 * MOST_OPERATIONS:
            del self.numbers[:MOST_OPERATIONS]
            del self.which[:MOST_OPERATIONS]

    def told(self) -> dict[int, Operation]:
        """By sequence number."""
        return {n: self.names[w] for n, w in zip(self.numbers, self.which, strict=True)}


@dataclass(frozen=True, slots=True)
class Wait:
    """A watchdog's report: this rank waited in a collective until the timeout."""

    group: str
    number: int
    operation: Operation
    seconds: float
    line: int
    enqueued: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of a rank. `level`: 0 its own, 1 a wait that ran out, 2 what follows when another process ends."""

    level: int
    kind: str
    type: str
    message: str
    line: int
    step: float
    place: str = ""
    """`file.py:12 (function)` of the innermost frame of the user's own code."""
    records: int = 0
    """Records before it: an error that many follow was survived."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a launcher, scheduler or another rank says of a rank that may no longer speak for itself.

    `about`: a rank ("37"), a process of a host ("node-4/5") or a host ("node-4/"). `kind` as of `Fault`, or "absent"
    (it did not come to a barrier), or "told-to-end"; of "mismatch" (its collective met another one) nobody says whose.
    """

    kind: str
    about: str
    text: str
    source: str
    line: int


@dataclass(slots=True)
class Event:
    """A line that is no record of metrics, by its template (every number as #)."""

    count: int
    step: float
    line: int
    text: str


@dataclass(slots=True)
class Attempt:
    """One start of one rank. Steps are NaN where no record was seen."""

    line: int = 1
    end_line: int = 1
    world: int | None = None
    number: int | None = None
    """Of the restart, where the log or the folder says so."""
    first_step: float = math.nan
    step: float = math.nan
    step_line: int = 0
    records: int = 0
    resumed: bool = False
    finished: bool = False
    series: dict[str, Thin] = field(default_factory=dict)
    bad: dict[str, tuple[float, int, str]] = field(default_factory=dict)
    """By metric: step, line and text of the first value that is no number."""
    counts: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """By the sentence: numbers of batches or samples that it printed, with their lines."""
    operations: dict[str, Operations] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    settings: dict[str, tuple[str, int]] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)
    last: tuple[int, str] = (0, "")
    """Line and text of the last line that is no error."""
    stack: str = ""
    """The innermost frame of the main thread in a dump of stacks."""


@dataclass(slots=True)
class Stream:
    """What one process wrote into one file."""

    source: str
    rank: int | None = None
    local: int | None = None
    host: str | None = None
    attempts: list[Attempt] = field(default_factory=lambda: [Attempt()])

    @property
    def now(self) -> Attempt:
        """The attempt that is being read."""
        return self.attempts[-1]


@dataclass(slots=True)
class FileTold:
    """One file: its processes, what is claimed in it of others, and a note where it was not read whole."""

    name: str
    bytes: int = 0
    lines: int = 0
    streams: list[Stream] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    note: str = ""
    form: str = ""
    """The launcher's prefix of its lines (see `prefixes.Form`)."""
