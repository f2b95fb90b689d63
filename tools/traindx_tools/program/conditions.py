"""When a part of a program runs. What no text can say is a question whose answer a scenario gives."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Situation:
    """Where a scenario stands: the turn of the innermost loop, whether it is its last, and its answers."""

    turn: int
    is_last: bool
    answers: Mapping[Hashable, bool]
    periods: Mapping[Hashable, int]
    """How long the windows are that a divisor cuts (2 or 3: enough to tell them apart from each turn)."""
    overflow: bool = False
    """The gradients are not finite."""


@dataclass(frozen=True)
class Condition:
    """A test, or several of them.

    `kind`: "unknown" (a question, the same one for the same `key`), "every" (once a window, the divisor is `key`, at
    the turn where turn + `shift` leaves `rest`), "after" (from turn `rest` on), "once" (turn `rest` alone), "last" (the
    last turn of a loop), "finite" (whether the gradients are finite), "never", "always", "not", "and", "or".
    """

    kind: str
    key: Hashable = None
    parts: tuple[Condition, ...] = ()
    shift: int = 0
    rest: int = 0
    of_loop: bool = field(default=False, compare=False)
    """Of "every": what is divided is the loop's own index, which begins anew with each pass."""
    text: str = field(default="", compare=False)
    """As it is written, for a sentence."""

    def holds(self, now: Situation) -> bool:
        """Whether it is met."""
        if self.parts:
            met = [p.holds(now) for p in self.parts]
            return not met[0] if self.kind == "not" else all(met) if self.kind == "and" else any(met)
        if self.kind == "every":
            return (now.turn + self.shift - self.rest) % now.periods.get(self.key, 2) == 0
        if self.kind == "after":
            return now.turn >= self.rest
        if self.kind in ("once", "last"):
            return now.turn == self.rest if self.kind == "once" else now.is_last
        if self.kind == "finite":
            return not now.overflow
        return now.answers.get(self.key, False) if self.kind == "unknown" else self.kind == "always"

    def atoms(self) -> Iterator[Condition]:
        """The tests that it is made of."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.atoms()

    def asks_length_of(self, containers: frozenset[Hashable]) -> bool:
        """Whether it compares the length of one of these with something."""
        return isinstance(self.key, tuple) and self.key[:1] == ("length",) and self.key[1] in containers

    def has(self, kind: str) -> bool:
        """Whether one of its tests is of this kind."""
        return any(a.kind == kind for a in self.atoms())


ALWAYS = Condition("always")
NEVER = Condition("never")
