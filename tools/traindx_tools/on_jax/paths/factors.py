"""The numbers that a function multiplies its arrays by and makes of single numbers alone: learning rates, weights.

A schedule within a jitted step is arithmetic over one counter of its state. That part of the jaxpr is evaluated here
for given values of the counters; whatever needs an array is left out. So what a schedule gives at any step is asked of
the compiled program itself, however it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.places import Place, place_of

MOST_NESTED = 32
SPREADS = frozenset({"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "copy"})
"""Give an array of one and the same number for a number."""
OPAQUE = frozenset({"scan", "while", "random_seed", "random_wrap", "random_bits", "pure_callback", "io_callback"})

Path = tuple[int, ...]
"""Which equation: its number in each of the nested jaxprs."""


@dataclass(frozen=True)
class Number:
    """A value that single numbers alone decide. `inputs`: of the jaxpr, as bits."""

    value: Any
    inputs: int


@dataclass(frozen=True)
class Factor:
    """A number by which an array of this `shape` is multiplied. `inputs`: of the jaxpr, that it is made of."""

    value: float
    inputs: frozenset[int]
    shape: tuple[int, ...]
    place: Place | None


@dataclass
class _Found:
    factors: dict[Path, Factor] = field(default_factory=dict)


def factors(jaxpr: Any, numbers: Mapping[int, Any]) -> dict[Path, Factor]:
    """The factors in a closed jaxpr where the inputs in `numbers` (shape `()`, by position) have these values.

    Raises what JAX raises for a primitive that cannot be evaluated by itself.
    """
    found = _Found()
    given = [Number(numbers[i], 1 << i) if i in numbers else None for i in range(len(jaxpr.jaxpr.invars))]
    _run(found, jaxpr, given, (), None)
    return found.factors


def _run(found: _Found, jaxpr: Any, given: Sequence[Number | None], path: Path,
         around: Place | None) -> list[Number | None]:
    body = jaxpr.jaxpr
    env: dict[Any, Number | None] = dict(zip(body.invars, given, strict=True))
    env.update((v, Number(c, 0) if np.ndim(c) == 0 and _is_number(v.aval) else None)
               for v, c in zip(body.constvars, jaxpr.consts, strict=True))

    def read(atom: Any) -> Number | None:
        if internals.is_literal(atom):
            return Number(atom.val, 0) if np.ndim(atom.val) == 0 and _is_number(atom.aval) else None
        return env.get(atom)

    for number, eqn in enumerate(body.eqns):
        outputs = _equation(found, eqn, [read(a) for a in eqn.invars], (*path, number), around)
        env.update(zip(eqn.outvars, outputs, strict=True))
    return [read(a) for a in body.outvars]


def _equation(found: _Found, eqn: Any, given: list[Number | None], path: Path,
              around: Place | None) -> list[Number | None]:
    nothing: list[Number | None] = [None] * len(eqn.outvars)
    known = [g for g in given if g is not None]
    name = eqn.primitive.name
    if not known or name in OPAQUE:
        return nothing
    body = internals.called(eqn)
    if body is not None and len(path) < MOST_NESTED:
        return _run(found, body, given, path, place_of(eqn, around))
    if name == "cond" and given[0] is not None and len(path) < MOST_NESTED:
        return _run(found, _branch(eqn, given[0].value), given[1:], path, place_of(eqn, around))
    if len(known) == len(given):
        return _evaluated(eqn, known) or nothing
    if name == "mul" and eqn.outvars[0].aval.shape:
        _note(found, eqn, known[0], path, around)
    elif name == "select_n" and given[0] is not None and not np.ndim(given[0].value):
        chosen = given[1 + int(given[0].value)]
        kept = 0.0 if chosen is not None and not np.any(np.asarray(chosen.value)) else 1.0
        _note(found, eqn, Number(kept, given[0].inputs), path, around)
    return nothing


def _note(found: _Found, eqn: Any, by: Number, path: Path, around: Place | None) -> None:
    inputs = frozenset(i for i in range(by.inputs.bit_length()) if by.inputs >> i & 1)
    if inputs:
        found.factors[path] = Factor(float(np.asarray(by.value)), inputs, tuple(eqn.outvars[0].aval.shape),
                                     place_of(eqn, around))


def _branch(eqn: Any, index: Any) -> Any:
    branches = eqn.params["branches"]
    return branches[int(np.clip(int(np.asarray(index)), 0, len(branches) - 1))]


def _evaluated(eqn: Any, given: Sequence[Number]) -> list[Number | None] | None:
    """The outputs of an equation over numbers; None where arrays are made that do not hold one number alone."""
    inputs = 0
    for number in given:
        inputs |= number.inputs
    if eqn.primitive.name in SPREADS:
        return [Number(given[0].value, inputs)]
    if any(getattr(v.aval, "shape", (0,)) for v in (*eqn.invars, *eqn.outvars)):
        return None
    return [Number(value, inputs) for value in internals.bind(eqn, [n.value for n in given])]


def _is_number(aval: Any) -> bool:
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    return (bool(kind) and kind in "fiub") or "bfloat" in str(getattr(aval, "dtype", ""))
