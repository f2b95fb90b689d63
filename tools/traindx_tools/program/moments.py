"""What a program will do, as a tree: moments in sections (a loop, an arm of a condition, a called function, a hook)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
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


@dataclass(frozen=True, eq=False)
class Change:
    """What becomes of parameters.

    `kind`: "replaced" (a part of a module is set to a new one), "grown" (a call adds parameters), "assigned" (tensors
    of a file take the place of the parameters), "frozen", "thawed", "wrapped" (replicas are tied to what is there),
    "given" (an optimizer gets a further group).
    """

    kind: str
    parts: frozenset[int] = frozenset()
    """Identities of the modules concerned; of "replaced" the module that got the new part."""
    new: frozenset[int] = frozenset()
    """Of "replaced": the layers with weights in the new part, or all of it where none is known."""
    text: str = ""
    """What is new, in words."""
    of: str = ""
    """Where the first module concerned is made."""
    takes_a_place: bool = False
    """Of "replaced": there was another part before."""
    somewhere: bool = False
    """Which part it is, is not known: what puts it there may serve any module."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What keeps values (or is emptied), and what is known of a value that it keeps."""

    containers: frozenset[Hashable]
    """What it is known by: an object, a name of a function, an attribute of a class."""
    text: str = ""
    born: frozenset[str] = frozenset()
    """The loops, as `file.py:12`, in each turn of which it is made anew."""
    crossing: int | None = None
    """Of a name: how many of the innermost loops of its function lie between its binding and here; -1 where it is bound
    outside of it."""
    bound: float | None = None
    """The most that it keeps at once; None where nothing bounds it."""
    carries: bool | None = None
    """Whether the value carries the graph of a module; None where only what is sent backward can tell."""
    own: frozenset[Hashable] = frozenset()
    """The value, and what it was made of with its graph, in terms of `Act.traces`."""
    sum: frozenset[Hashable] = frozenset()
    """Of a running sum: the sum in terms of `Act.traces`."""
    is_gradient: bool = False
    """The value is a gradient: a tensor without a graph."""
    itself: frozenset[Hashable] = frozenset()
    """The value alone, without what it was made of: what a forward pass gives has the traces of the pass."""
    parts: tuple[int, ...] = ()
    """Of several values in one tuple: those that carry a graph."""


@dataclass(frozen=True)
class Cut:
    """Where a value lost its graph, and why, as the end of a sentence."""

    text: str
    at: Spot
    known: Known = Known.DERIVED


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
    text: str = ""
    """Of a forward pass: what is called, as it is written."""
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
    restores: str = ""
    """Of mode: where the mode was read, as `file.py:12`, that is set here."""
    graph: bool | None = None
    """Of backward: whether the loss certainly has a graph."""
    cut: Cut | None = None
    """Of backward: where the loss lost its graph to the model. Of clip: where its iterator over the parameters was gone
    through before."""
    copies: tuple[tuple[Spot, str, frozenset[int]], ...] = ()
    """Of backward: where numbers were copied into a new tensor on the way to the loss, where they arose (in terms of
    `traces`), and the modules that they came from."""
    retains: bool = False
    """Of backward: it is told to keep the graph."""
    unused: bool = False
    """Of a forward pass: nobody takes its result."""
    again: bool = False
    """Of a forward pass: a loop repeats it with the same inputs."""
    gradients: bool | None = True
    """Whether autograd records."""
    change: Change | None = None
    """Of a change of parameters: which."""
    reached: frozenset[int] = frozenset()
    """Of backward: identities of the modules by which the loss was computed, as far as they are known."""
    traces: frozenset[Hashable] = frozenset()
    """Of backward: what the loss was computed from, as places and unknown things. Of a forward pass: its result."""
    kept: Kept | None = None
    """Of what is kept or emptied: the container and the value. Of a hook: what it is registered on."""
    loss: Loss | None = None
    schedule: Schedule | None = None
    known: Known = Known.DERIVED
    origin: Any = field(default=None, repr=False)
    """What the reader made it from; for the reader alone, such as to write an edit."""


@dataclass(eq=False)
class Section:
    """A part of the program. `kind`: "root", "loop", "arm", "call", "with", "hook" (runs at each pass of a module)."""

    kind: str
    at: Spot
    items: list[Act | Section] = field(default_factory=list)
    condition: Condition = ALWAYS
    count: int | None = None
    """How often a loop runs, where the text fixes it."""
    turns: int | None = None
    """The same where options keep their defaults and data have the length that the text says."""
    leaves: str = ""
    """How an arm is certainly left: "return", "raise", "break", "continue"; "" where what follows it runs too."""
    framework: str = ""
    """The framework that calls it: "lightning manual", "lightning", "trainer"; "" for the program itself."""
    because: Spot | None = None
    """What makes a framework leave the update to the program."""
    origin: Any = field(default=None, repr=False)
    has: frozenset[Moment] = frozenset()
    """The moments inside."""
    name: str = ""
    """Of a call: the function that is called, "Class.method" or "function"."""
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


ASIDE = frozenset({Moment.KEPT, Moment.EMPTIED, Moment.HOOKED, Moment.UNHOOKED, Moment.GRADIENT})
"""Moments that change neither gradients nor modes nor parameters: who plays a program passes them over."""


def conditions_within(path: tuple[Section, ...], section: Section) -> list[Condition]:
    """The conditions around a moment, inside a section that is on its path."""
    return [s.condition for s in path[path.index(section) + 1:] if s.kind == "arm"]
