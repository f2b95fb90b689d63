"""Equations that deserve a look: logarithms, roots and divisions without a guard, and what cuts gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.places import Place, place_of, within_jax

GUARDS = frozenset({"max", "clamp", "exp", "exp2", "add", "add_any", "custom_jvp_call", "cosh",
                    "select_n", "integer_pow", "erf_inv", "reduce_max"})
"""What usually keeps an operand away from 0: a lower bound, an exponential, something added, a choice, a square."""
PASSES = frozenset({"broadcast_in_dim", "convert_element_type", "reshape", "squeeze", "expand_dims", "transpose",
                    "slice", "reduce_sum", "copy", "stop_gradient", "mul", "pjit", "jit", "abs", "neg"})
"""What hands the question on to its first operand."""
RISKY = {"log": "a value that is 0 gives -inf", "rsqrt": "a value that is 0 gives inf",
         "sqrt": "its gradient at 0 is infinite", "div": "a divisor that is 0 gives inf or nan"}
CUTS = {"stop_gradient": "cuts the gradient", "round": "has no gradient", "floor": "has no gradient",
        "ceil": "has no gradient", "sign": "has no gradient", "argmax": "has no gradient", "argmin": "has no gradient"}


def risks(jaxpr: Any, around: Place | None = None) -> Iterator[tuple[Place | None, str]]:
    """(place, what to look at), in the order of execution, within calls and loops too."""
    made = {id(out): eqn for eqn in jaxpr.jaxpr.eqns for out in eqn.outvars}
    used = {id(atom) for eqn in jaxpr.jaxpr.eqns for atom in eqn.invars} | {id(v) for v in jaxpr.jaxpr.outvars}
    for eqn in jaxpr.jaxpr.eqns:
        if not any(id(out) in used for out in eqn.outvars):
            continue  # written down and asked for by nothing, as the sign of a sum of exponentials is
        place = place_of(eqn, around)
        name = eqn.primitive.name
        if name in RISKY and not _guarded(eqn.invars[-1 if name == "div" else 0], made, 0):
            yield place, f"{name}: {RISKY[name]}; nothing before it in this function keeps its operand from 0"
        if name in CUTS and not (name == "stop_gradient" and within_jax(eqn)):
            yield place, f"{name} {CUTS[name]}"
        if name == "convert_element_type" and _narrows(eqn):
            yield place, f"{eqn.invars[0].aval.dtype} becomes {eqn.outvars[0].aval.dtype}"
        for _, body in internals.inner_jaxprs(eqn):
            yield from risks(body, place)


def _guarded(atom: Any, made: dict[int, Any], depth: int) -> bool:
    if internals.is_literal(atom):
        return bool(atom.val != 0)
    eqn = made.get(id(atom))
    if eqn is None or depth > 20:
        return eqn is not None  # too far away to say; an input of the function is not guarded
    name = eqn.primitive.name
    if name in GUARDS:
        return True
    return name in PASSES and _guarded(eqn.invars[0], made, depth + 1)


def _narrows(eqn: Any) -> bool:
    before, after = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    floating = before.kind == "f" or "float" in str(before)
    return floating and (after.kind in "iu" or after.itemsize < before.itemsize)
