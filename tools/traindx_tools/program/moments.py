"""What a program will do, as a tree: moments in sections (a loop, an arm of a condition, a called function)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.program.conditions import ALWAYS, Condition
from traindx_tools.program.entities import Loss, Model, Optimizer, Scaler, Schedule
from traindx_tools.program.known import Known
from traindx_tools.program.timeline import Moment


@dataclass(frozen=True)
class Spot:
    """A place in a text."""

    file: str
    line: int
    end_line: int | None = None
    quote: str = ""
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(eq=False)
class Act:
    """One moment as it stands in the text. Which of the fields are filled depends on the moment.

    `optimizers`: those that step, are made, cleared or unscaled. `models`: the modules whose gradients are cleared or
    clipped, whose mode changes, that are called, or that a loss reaches; None where that is not known (then all).
    """

    moment: Moment
    at: Spot
    name: str = ""
    """What is called, in a word: "clip_grad_norm_"."""
    owner: str = ""
    """The object on which it is called, as it is written."""
    optimizers: tuple[Optimizer, ...] = ()
    models: tuple[Model, ...] | None = None
    scaler: Scaler | None = None
    """The scaler through which a step is taken, that unscales or is updated."""
    scaled: bool | None = False
    """Of backward: whether the loss was multiplied by a loss scale. Of clip: whether its bound was."""
    is_measure: bool = False
    """Of clip: its bound is infinite, so it only measures."""
    training: bool | None = None
    """Of mode: train or eval."""
    unused: bool = False
    """Of a forward pass: nobody takes its result."""
    again: bool = False
    """Of a forward pass: a loop repeats it with the same inputs."""
    gradients: bool | None = True
    """Whether autograd records."""
    loss: Loss | None = None
    schedule: Schedule | None = None
    known: Known = Known.DERIVED
    origin: Any = field(default=None, repr=False)
    """What the reader made it from; for the reader alone, such as to write an edit."""


@dataclass(eq=False)
class Section:
    """A part of the program. `kind`: "root", "loop", "arm", "call"."""

    kind: str
    at: Spot
    items: list[Act | Section] = field(default_factory=list)
    condition: Condition = ALWAYS
    count: int | None = None
    """How often a loop runs, where the text fixes it."""
    leaves: str = ""
    """How an arm is certainly left: "return", "raise", "break", "continue"; "" where what follows it runs too."""
    framework: str = ""
    """The framework that calls it: "lightning manual", "lightning", "trainer"; "" for the program itself."""
    because: Spot | None = None
    """What makes a framework leave the update to the program."""
    origin: Any = field(default=None, repr=False)
    has: frozenset[Moment] = frozenset()
    """The moments inside."""
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Answers to questions about what is inside. Asked only when the section is complete."""

    def acts(self, *moments: Moment) -> list[tuple[Act, tuple[Section, ...]]]:
        """The moments inside in the order of the text, each with the sections around it, outermost first. The list is
        kept: it is not to be changed."""
        found: list[tuple[Act, tuple[Section, ...]]] | None = self.memo.get(moments)
        if found is None:
            found = self.memo[moments] = list(self._walked(*moments))
        return found

    def path_to(self, act: Act) -> tuple[Section, ...]:
        """The sections around an act, outermost first, where it stands first; () where it is not inside."""
        paths: dict[int, tuple[Section, ...]] | None = self.memo.get("paths")
        if paths is None:
            paths = self.memo["paths"] = {}
            for one, path in self.acts():
                paths.setdefault(id(one), path)
        return paths.get(id(act), ())

    def _walked(self, *moments: Moment) -> Iterator[tuple[Act, tuple[Section, ...]]]:
        wanted = frozenset(moments)
        stack: list[tuple[Act | Section, tuple[Section, ...]]] = [(self, ())]
        budget = MOST_WALKED
        while stack and budget:
            item, path = stack.pop()
            budget -= 1
            if isinstance(item, Act):
                if not wanted or item.moment in wanted:
                    yield item, path
            elif not wanted or wanted & item.has:
                stack.extend((i, (*path, item)) for i in reversed(item.items))


MOST_WALKED = 20_000
"""Most moments and sections that one walk visits: a function that is called in many places is walked in each."""


def loops(path: tuple[Section, ...]) -> tuple[Section, ...]:
    """The loops among the sections around a moment, outermost first."""
    return tuple(s for s in path if s.kind == "loop")


def training_loop(path: tuple[Section, ...]) -> Section | None:
    """The innermost loop around a moment that also sends a loss backward."""
    return next((s for s in reversed(path) if s.kind == "loop" and Moment.BACKWARD in s.has), None)


def conditions_within(path: tuple[Section, ...], section: Section) -> list[Condition]:
    """The conditions around a moment, inside a section that is on its path."""
    return [s.condition for s in path[path.index(section) + 1:] if s.kind == "arm"]
