"""What is known while keys are followed: names, uses, and the calls, branches and loops around an equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_jax.keys.naming import Facts, Names, Value, as_raw
from traindx_tools.on_jax.keys.uses import DRAW, Reuse, Use, reuses
from traindx_tools.on_jax.nonfinite.interpret import Level
from traindx_tools.on_jax.places import Place, calls_around

MOST_KEYS = 2**16
"""Keys of one array that are followed one by one."""


Body = Callable[["Flow", Any, Sequence[Value], "Around"], list[Value]]


@dataclass
class Flow:
    """Names and uses so far. `body` follows a jaxpr within another one: the branch of a cond, the body of a loop."""

    body: Body
    names: Names = field(default_factory=Names)
    uses: list[Use] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    """What stands for each input of the function."""
    _counted: int = 0

    def count(self) -> int:
        """A number that no call gave before."""
        self._counted += 1
        return self._counted

    def reuses(self) -> list[Reuse]:
        """The keys that are used more than once."""
        return list(reuses(self.uses, [self.names.facts[u.key].loops for u in self.uses]))

    def constant_draws(self) -> list[Use]:
        """The draws from keys that depend on no argument: they give the same numbers at each call."""
        return [u for u in self.uses if u.use == DRAW and not self.names.facts[u.key].arguments]

    def derived_draws(self) -> dict[frozenset[str], Use]:
        """The first draw from a key that depends on exactly these arguments, for each such set of them."""
        found: dict[frozenset[str], Use] = {}
        for use in self.uses:
            if use.use == DRAW and self.names.facts[use.key].arguments:
                found.setdefault(self.names.facts[use.key].arguments, use)
        return found


@dataclass(frozen=True)
class Around:
    """The calls, branches and loops around an equation."""

    level: Level = field(default_factory=Level)
    branches: tuple[tuple[int, int], ...] = ()
    loops: tuple[tuple[int, int | None], ...] = ()
    calls: tuple[Place, ...] = ()
    """The lines of the user's code around the equation that the body belongs to, the innermost first."""
    again: bool = False
    """It is computed again by the backward pass."""

    def within(self, step: str, eqn: Any, **changed: Any) -> Around:
        calls = (*calls_around(eqn), *self.calls)
        told = {**vars(self), "level": self.level.within(step, eqn), "calls": calls, **changed}
        return Around(**told)


def is_key(aval: Any) -> bool:
    """Whether a type is an array of typed keys."""
    return str(getattr(aval, "dtype", "")).startswith("key<")


def may_be_raw(aval: Any) -> bool:
    """Whether a type can be an array of raw keys: uint32 with two numbers each."""
    shape = tuple(getattr(aval, "shape", ()))
    return str(getattr(aval, "dtype", "")) == "uint32" and len(shape) > 0 and shape[-1] == 2


def fresh(names: Names, aval: Any, what: tuple[Any, ...], facts: Facts | None, parts: Sequence[int] = ()) -> Value:
    """A value of which nothing is known but how it came about."""
    whole = names.of(*what, parts=parts, facts=facts)
    shape = tuple(getattr(aval, "shape", ()))
    if is_key(aval) and np.prod(shape) <= MOST_KEYS:
        return Value(whole, names.array(shape, "of", *what, parts=parts, facts=facts))
    if may_be_raw(aval) and np.prod(shape[:-1]) <= MOST_KEYS:
        return Value(whole, as_raw(names.array(shape[:-1], "of", *what, parts=parts, facts=facts)))
    return Value(whole)


def name_of(names: Names, eqn: Any, given: Sequence[Value]) -> int:
    params = tuple((k, v if isinstance(v, (int, float, str, bool, tuple)) and _hashable(v) else id(v))
                   for k, v in sorted(eqn.params.items()))
    own = id(eqn) if eqn.effects else 0
    return names.of(eqn.primitive.name, params, own, parts=[v.name for v in given])


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


Handler = Callable[[Flow, Any, list[Value], Around], list[Value]]
