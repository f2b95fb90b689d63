"""What a jaxpr holds as constants and where it is used, and which of its inputs it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.reach import reach
from traindx_tools.on_jax.places import Place, calls_around, place_of


def constants(jaxpr: Any, function: str) -> Iterator[tuple[Any, Place | None]]:
    """Every array that a closed jaxpr captured, those of its calls and loops too, with the line that leads to it.

    The line is one of `function` itself where it is known: what a layer computes with was chosen there.
    """
    first: dict[Any, Any] = {}
    for eqn in jaxpr.jaxpr.eqns:
        for atom in eqn.invars:
            if not internals.is_literal(atom):
                first.setdefault(atom, eqn)
    for variable, value in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=False):
        yield value, _place(first[variable], function) if variable in first else None
    for eqn in jaxpr.jaxpr.eqns:
        for _, body in internals.inner_jaxprs(eqn):
            yield from constants(body, function)


def _place(eqn: Any, function: str) -> Place | None:
    around = calls_around(eqn)
    return next((p for p in around if p.function == function), around[-1] if around else place_of(eqn))


def read_inputs(jaxpr: Any) -> int:
    """As bits, the inputs that some output is computed from; what is only handed through is not read."""
    handed = set(jaxpr.jaxpr.invars)
    found = 0
    for ways, output in zip(reach(jaxpr).outputs, jaxpr.jaxpr.outvars, strict=True):
        if internals.is_literal(output) or output not in handed:
            found |= ways.any
    return found


def computed_types(jaxpr: Any) -> list[tuple[tuple[int, ...], str]]:
    """Shape and dtype of each output that is computed."""
    handed = set(jaxpr.jaxpr.invars)
    return [(tuple(v.aval.shape), str(v.aval.dtype)) for v in jaxpr.jaxpr.outvars
            if hasattr(v.aval, "shape") and (internals.is_literal(v) or v not in handed)]
