"""What is remembered of a value that is not finite while a jaxpr is evaluated: who made it, on which way it came."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.on_jax.nonfinite.values import Stats
from traindx_tools.on_jax.places import Place

ARGUMENT, CONSTANT, EQUATION = "argument", "constant", "equation"
"""Where a value that is not finite can come from."""


@dataclass(frozen=True)
class Mark:
    """`origins`: numbers of candidates. `written`: an infinity or NaN that the program wrote is among the values."""

    origins: frozenset[int] = frozenset()
    hidden: frozenset[int] = frozenset()
    """Those of `origins` that came on a way through the backward pass alone."""
    written: bool = False
    wrapped: frozenset[int] = frozenset()
    """Integer overflows that this value was computed from."""

    @property
    def bad(self) -> bool:
        """Whether something is not finite that nobody wrote there."""
        return bool(self.origins)


CLEAN = Mark()


def joined(marks: Iterable[Mark], *, backward: bool = False) -> Mark:
    """The mark of a value that was computed from others. `backward`: by an equation of the backward pass."""
    told = list(marks)
    origins = frozenset[int]().union(*(m.origins for m in told))
    plain = frozenset[int]().union(*(m.origins - m.hidden for m in told))
    hidden = origins if backward else origins - plain
    return Mark(origins, hidden, any(m.written for m in told), wrapped_of(told))


def wrapped_of(marks: Iterable[Mark]) -> frozenset[int]:
    """The integer overflows behind any of these."""
    return frozenset[int]().union(*(m.wrapped for m in marks))


@dataclass
class Candidate:
    """Something that gave a value that is not finite for finite inputs; an origin if it reached an output."""

    number: int
    kind: str
    op: str
    place: Place | None
    path: tuple[str, ...]
    """The calls, loops and branches around it, outermost first, such as `scan iteration 3`."""
    stack: str
    inputs: tuple[Stats, ...] = ()
    output: Stats | None = None
    index: tuple[int, ...] = ()
    """Where in the output the first value that is not finite lies."""
    at_index: tuple[float, ...] = ()
    """The inputs at that place, where they have the output's shape."""
    params: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    """The path of an argument, such as `params['w']`."""
    makers: tuple[str, ...] = ()
    """The operations that made its inputs."""
    written: bool = False
    """A written infinity was among its inputs."""
    masked_row: bool = False
    """A row of an input was infinite from end to end."""
    quenched_by: set[str] = field(default_factory=set)
    """Operations of the forward pass that took it in and gave finite values."""
    wrapped: tuple[int, ...] = ()

    @property
    def backward(self) -> bool:
        """Whether it belongs to a backward pass."""
        return "transpose" in self.stack

    @property
    def phase(self) -> str:
        """"backward", "optimizer" (a library of optimizers) or "forward"."""
        if self.backward:
            return "backward"
        library = (self.place.library or "") if self.place else ""
        return "optimizer" if library.startswith(OPTIMIZERS) else "forward"


OPTIMIZERS = ("optax/_src/", "optax/transforms/", "optax/contrib/", "flax/training/", "flax/nnx/training/")
"""Where updates are computed. Losses of optax lie in `optax/losses/`."""
