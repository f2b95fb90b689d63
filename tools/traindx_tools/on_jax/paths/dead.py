"""What a function computes and drops: equations whose results reach none of its outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.marks import OPTIMIZERS
from traindx_tools.on_jax.places import Place, place_of

STATISTICS = ("flax/linen/normalization.py", "flax/nnx/nn/normalization.py")
KEEPING = frozenset({"add", "sub", "select_n"})
"""The last operations of an update of running state."""


@dataclass(frozen=True)
class Dropped:
    """State that is computed and dropped. `what`: "optimizer state" or "batch statistics"; `names`: its inputs."""

    what: str
    names: tuple[str, ...]
    place: Place
    function: str


def dead(jaxpr: Any) -> list[Any]:
    """The equations of a jaxpr (not of those within) that reach no output."""
    needed = {v for v in jaxpr.outvars if not internals.is_literal(v)}
    found = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in needed for v in eqn.outvars):
            needed |= {a for a in eqn.invars if not internals.is_literal(a)}
        else:
            found.append(eqn)
    return found[::-1]


def dropped_state(jaxpr: Any, names: tuple[str, ...], function: str) -> Iterator[Dropped]:
    """State that a library of optimizers or layers computes anew from an input, and that goes nowhere."""
    told: dict[tuple[str, Place], set[str]] = {}
    for what, place, name in (*_statistics(jaxpr.jaxpr, names), *_optimizer(jaxpr.jaxpr, names)):
        told.setdefault((what, Place(place.file, place.line, place.function)), set()).add(name)
    for (what, place), roots in told.items():
        yield Dropped(what, tuple(sorted(roots)), place, function)


def _statistics(body: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Place, str]]:
    """Running statistics whose new values are computed by dead equations."""
    eqns = dead(body)
    from_input: dict[Any, set[str]] = {v: {n} for v, n in zip(body.invars, names, strict=False)}
    used = {a for e in eqns for a in e.invars if not internals.is_literal(a)}
    for eqn in eqns:
        roots = set[str]().union(*(from_input.get(a, set()) for a in eqn.invars if not internals.is_literal(a)))
        from_input.update((v, roots) for v in eqn.outvars)
        place = place_of(eqn)
        ends = eqn.primitive.name in KEEPING and not any(v in used for v in eqn.outvars)
        if ends and place is not None and (place.library or "").startswith(STATISTICS):
            yield from (("batch statistics", place, name) for name in roots)


def _optimizer(body: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Place, str]]:
    """Arrays that an optimizer reads and the function returns as they were, and counts of steps that go nowhere."""
    returned = {v for v in body.outvars if not internals.is_literal(v)}
    counted = _counted(body)
    uses: dict[Any, list[Any]] = {v: [] for v in body.invars}
    for eqn in body.eqns:
        for atom in eqn.invars:
            if not internals.is_literal(atom) and atom in uses:
                uses[atom].append(eqn)
    for variable, name in zip(body.invars, names, strict=False):
        places = (place_of(e) for e in uses[variable])
        place = next((p for p in places if p is not None and (p.library or "").startswith(OPTIMIZERS)), None)
        if place is None:
            continue
        integer = getattr(getattr(variable.aval, "dtype", None), "kind", "") in "iu"
        kept = variable in returned and (integer or len(variable.aval.shape) > 0)
        if kept or (integer and not variable.aval.shape and not (counted.get(variable, set()) & returned)):
            yield "optimizer state", place, name


def _counted(body: Any) -> dict[Any, set[Any]]:
    """For each integer input the integer values that are computed from it."""
    found: dict[Any, set[Any]] = {v: set() for v in body.invars}
    source: dict[Any, set[Any]] = {v: {v} for v in body.invars}
    for eqn in body.eqns:
        roots = set[Any]().union(*(source.get(a, set()) for a in eqn.invars if not internals.is_literal(a)))
        for v in eqn.outvars:
            if getattr(getattr(v.aval, "dtype", None), "kind", "") in "iu":
                source[v] = roots
                for root in roots:
                    found[root].add(v)
    return found
