"""Functions that do not train: what they captured and were given, and when they were called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.places import Place
from traindx_tools.on_jax.stale.captured import computed_types, constants, read_inputs
from traindx_tools.on_jax.stale.sample import Sample, sample_of
from traindx_tools.on_jax.state import reference
from traindx_tools.on_jax.tracing import argument_names, dynamic_leaves
from traindx_tools.on_jax.watched import Watched

MOST_CONSTANTS, MOST_GIVEN = 256, 512
MOST_STEPS = 1_000
"""Steps of the training after which something was called: so many are told apart."""
EAGER = 6
"""Times after another step of the training at which the arguments are all looked at; later at powers of two."""


@dataclass(eq=False)
class Constant:
    """An array that a function captured."""

    sample: Sample
    reference: Any
    place: Place | None


@dataclass(frozen=True, eq=False)
class Given:
    """An argument leaf in one look. `input`: its number among the inputs of the jaxpr, None where that is not known."""

    name: str
    input: int | None
    sample: Sample


@dataclass(eq=False)
class Look:
    """The arguments of one call, after so many calls of each function that trains. `types`: of all arrays."""

    steps: dict[int, int]
    given: list[Given]
    types: frozenset[Any]


@dataclass(eq=False)
class Other:
    """One compiled function that is called from outside."""

    watched: Watched
    jaxpr: Any = None
    trains: bool = False
    """It is differentiated: what it captured is judged, what it is given is its own state."""
    constants: list[Constant] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    after: dict[int, set[int]] = field(default_factory=dict)
    """By function that trains: after how many of its calls this one was called; bounded."""
    calls: int = 0
    """Calls after the first one of a function that trains."""
    times: int = 0
    """How often it was called after another step of the training."""
    waits: bool = False
    """A look is due."""
    inputs: dict[int, int] = field(default_factory=dict)
    """The number among the jaxpr's inputs by that of the argument leaf; empty where that is not known."""
    batch: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    """References to arguments and outputs of the last call."""
    shared: int = 0
    """Calls after which the training was called with one of the same arguments."""
    fed: int = 0
    """Calls whose output the training was called with."""

    def compiled(self, jaxpr: Any) -> None:
        """What it captured; a function that is compiled again captures anew."""
        self.jaxpr = jaxpr
        for name in ("reads", "computes"):
            self.__dict__.pop(name, None)
        self.constants = captured(jaxpr, self.watched.name)

    @cached_property
    def reads(self) -> int:
        """As bits, the inputs that it computes with."""
        return read_inputs(self.jaxpr) if self.jaxpr is not None else 0

    def does_read(self, given: Given) -> bool:
        """Whether it computes with this argument; also where that is not known."""
        return given.input is None or self.jaxpr is None or bool(self.reads >> given.input & 1)

    @cached_property
    def computes(self) -> list[Any]:
        """Types of its outputs."""
        return computed_types(self.jaxpr) if self.jaxpr is not None else []

    def called_after(self, steps: dict[int, int]) -> bool:
        """It was called after so many calls of each function that trains. Whether that is another step of them."""
        self.calls += 1
        new = False
        for number, count in steps.items():
            after = self.after.setdefault(number, set())
            if count not in after and len(after) < MOST_STEPS:
                after.add(count)
                new = True
        self.times += new
        self.waits = self.waits or (new and (self.times <= EAGER or self.times & (self.times - 1) == 0))
        return new

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any], steps: dict[int, int]) -> None:
        """Samples of its arguments; nothing where one has not arrived yet."""
        if not all(getattr(leaf, "is_ready", lambda: True)() for leaf in leaves):
            return
        self.number_inputs(args, kwargs, leaves)
        given: list[Given] = []
        for index, (name, leaf) in enumerate(zip(argument_names(self.watched, args, kwargs), leaves, strict=True)):
            sample = sample_of(leaf, wait=False) if len(given) < MOST_GIVEN else None
            if sample is not None:
                given.append(Given(name, self.inputs.get(index), sample.without_values()))
        types = frozenset((tuple(x.shape), str(x.dtype)) for x in leaves if getattr(x, "ndim", 0))
        self.looks.append(Look(dict(steps), given, types))
        self.waits = False

    def number_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]) -> None:
        """Which input of the jaxpr each argument leaf is."""
        dynamic = dynamic_leaves(self.watched, args, kwargs)
        if self.jaxpr is None or len(dynamic) != len(self.jaxpr.jaxpr.invars):
            self.inputs = {}
            return
        numbers = {id(leaf): i for i, leaf in enumerate(dynamic)}
        self.inputs = {index: numbers[id(leaf)] for index, leaf in enumerate(leaves) if id(leaf) in numbers}


def captured(jaxpr: Any, function: str) -> list[Constant]:
    """Samples of what a jaxpr holds as constants."""
    found: list[Constant] = []
    for value, place in constants(jaxpr, function):
        sample = sample_of(value) if len(found) < MOST_CONSTANTS and not internals.is_tracer(value) else None
        if sample is not None:
            found.append(Constant(sample.without_values(), reference(value), place))
    return found
