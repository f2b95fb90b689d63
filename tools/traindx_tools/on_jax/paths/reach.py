"""Which inputs of a jaxpr reach which outputs, and on which of these ways a gradient comes back.

A way is cut where a derivative is zero or undefined by construction: stop_gradient, rounding, sign, comparisons,
argmax, casts to integers, the predicate of a select. Functions with derivatives of their own (custom_jvp, custom_vjp)
are taken to pass gradients. Branches of a cond are followed apart, so that what only some of them pass is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.places import Place, place_of, within_jax

FLAT = frozenset({"stop_gradient", "round", "floor", "ceil", "sign", "argmax", "argmin", "is_finite", "nextafter",
                  "population_count", "clz", "eq", "ne", "lt", "le", "gt", "ge"})
"""Primitives whose derivative is zero everywhere, or none at all."""
OWN_DERIVATIVE = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"})
SELECTORS = {"select_n": 1, "cond": 1, "dynamic_slice": 0, "gather": 0, "clamp": 0}
"""How many first inputs only choose."""


@dataclass(frozen=True)
class Ways:
    """Inputs (as bits) that a value depends on at all; by a way that gradients take; by one in every branch."""

    any: int = 0
    smooth: int = 0
    sure: int = 0

    def __or__(self, other: Ways) -> Ways:
        return Ways(self.any | other.any, self.smooth | other.smooth, self.sure | other.sure)


@dataclass(frozen=True)
class Cut:
    """An equation at which the gradient of some inputs ends: their bits, its primitive and its line."""

    inputs: int
    op: str
    place: Place | None


@dataclass
class Reach:
    """What was found: the ways of each output, and the cuts in order."""

    outputs: list[Ways] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)


def reach(jaxpr: Any) -> Reach:
    """The ways from the inputs of a closed jaxpr to its outputs."""
    found = Reach()
    given = [Ways(1 << i, *(2 * (1 << i if is_float(v.aval) else 0,))) for i, v in enumerate(jaxpr.jaxpr.invars)]
    found.outputs = _run(found, jaxpr, given, None)
    return found


def is_float(aval: Any) -> bool:
    """Whether a type can carry a gradient."""
    dtype = getattr(aval, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return False
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float8"))


def _run(found: Reach, jaxpr: Any, given: Sequence[Ways], around: Place | None) -> list[Ways]:
    env: dict[Any, Ways] = dict(zip(jaxpr.jaxpr.invars, given, strict=True))
    for eqn in jaxpr.jaxpr.eqns:
        told = [_read(env, a) for a in eqn.invars]
        env.update(zip(eqn.outvars, _equation(found, eqn, told, around), strict=True))
    return [_read(env, a) for a in jaxpr.jaxpr.outvars]


def _read(env: Mapping[Any, Ways], atom: Any) -> Ways:
    return Ways() if internals.is_literal(atom) else env.get(atom, Ways())


def _equation(found: Reach, eqn: Any, given: list[Ways], around: Place | None) -> list[Ways]:
    name = eqn.primitive.name
    place = place_of(eqn, around)
    body = internals.called(eqn)
    if body is not None and name not in OWN_DERIVATIVE:
        return _run(found, body, given, place)
    if name == "cond":
        return _branches(found, eqn, given, place)
    if name in ("scan", "while"):
        return _loop(found, eqn, given, place)
    everything = _joined(given)
    choosing = SELECTORS.get(name, 0)
    if name in FLAT:
        passed = Ways(everything.any)
    else:
        smooth = _joined(given[choosing:])
        passed = Ways(everything.any, smooth.smooth, smooth.sure)
    outputs = [passed if is_float(v.aval) else Ways(everything.any) for v in eqn.outvars]
    if not (name == "stop_gradient" and within_jax(eqn)):  # softmax stops the gradient of its maximum, rightly
        _cut(found, name, place, everything, outputs)
    return outputs


def _cut(found: Reach, name: str, place: Place | None, given: Ways, outputs: Sequence[Ways]) -> None:
    ended = given.smooth & ~_joined(outputs).smooth
    if ended:
        found.cuts.append(Cut(ended, name, place))


def _joined(ways: Sequence[Ways]) -> Ways:
    total = Ways()
    for way in ways:
        total = total | way
    return total


def _branches(found: Reach, eqn: Any, given: list[Ways], place: Place | None) -> list[Ways]:
    results = [_run(found, branch, given[1:], place) for branch in eqn.params["branches"]]
    outputs = []
    for several in zip(*results, strict=True):
        sure = several[0].sure
        for way in several[1:]:
            sure &= way.sure
        both = _joined(several)
        outputs.append(Ways(both.any | given[0].any, both.smooth, sure))
    return outputs


def _loop(found: Reach, eqn: Any, given: list[Ways], place: Place | None) -> list[Ways]:
    """What is carried reaches itself again: followed until nothing more is added."""
    params = eqn.params
    if eqn.primitive.name == "scan":
        consts, carries, body = params["num_consts"], params["num_carry"], params["jaxpr"]
        fixed, carry, rows = given[:consts], given[consts:consts + carries], given[consts + carries:]
    else:
        tests, consts = params["cond_nconsts"], params["body_nconsts"]
        body = params["body_jaxpr"]
        fixed, carry, rows = given[tests:tests + consts], given[tests + consts:], []
    for _ in range(len(carry) + 2):
        before = len(found.cuts)
        results = _run(found, body, [*fixed, *carry, *rows], place)
        joined = [a | b for a, b in zip(carry, results, strict=False)]
        if joined == list(carry):
            break
        del found.cuts[before:]
        carry = joined
    return [*carry, *results[len(carry):]]
