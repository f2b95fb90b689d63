"""What the new value of each piece of state is made of: a gradient, data, or nothing but the old value.

A parameter that no gradient reaches may move all the same: weight decay makes it smaller. In the jaxpr its gradient is
an array of zeros, and what remains of its update once zeros are left out is made of the parameter itself, of moments
that are made of themselves too, and of single numbers (a learning rate, a count). The average of another network, a
statistic of the batch or a hidden state is made of more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.reach import SELECTORS, is_float

if TYPE_CHECKING:
    Made = int | None

ZERO = None
"""What a value is made of that is zero everywhere; otherwise inputs as bits."""
PRODUCTS = frozenset({"mul", "dot_general", "conv_general_dilated", "and"})
FIRST = frozenset({"div", "reduce_sum", "neg", "sqrt", "square", "sign", "abs", "tanh", "integer_pow",
                   "convert_element_type", "reshape", "squeeze", "broadcast_in_dim", "expand_dims", "transpose", "copy",
                   "real", "rev", "cumsum", "reduce_max", "reduce_precision", "slice", "optimization_barrier", "name",
                   "stop_gradient", "reduce_window_sum", "sharding_constraint"})
"""Zero where their first operand is."""


def closed_state(jaxpr: Any, fed: Mapping[int, int], trained: int) -> set[int]:
    """The inputs whose next value is made of nothing but themselves, their like and single numbers.

    `fed`: input by output, of what comes back in the next call. `trained`: inputs, as bits, that a gradient reaches:
    what is made of those is not meant.
    """
    body = jaxpr.jaxpr
    made = _run(jaxpr, [1 << i for i in range(len(body.invars))])
    free = sum(1 << i for i, v in enumerate(body.invars) if not getattr(v.aval, "shape", (0,)))
    told = {i: made[o] or 0 for o, i in fed.items() if o < len(made) and i < len(body.invars)
            and is_float(body.invars[i].aval) and not trained & 1 << i}
    while True:
        inside = sum(1 << i for i in told)
        open_ = [i for i, parts in told.items() if parts & ~(inside | free)]
        if not open_:
            return set(told)
        for i in open_:
            del told[i]


def _run(jaxpr: Any, given: Sequence[Made]) -> list[Made]:
    body = jaxpr.jaxpr
    env: dict[Any, Made] = dict(zip(body.invars, given, strict=True))
    env.update((v, ZERO if _all_zero(c) else 0) for v, c in zip(body.constvars, jaxpr.consts, strict=True))
    for eqn in body.eqns:
        env.update(zip(eqn.outvars, _equation(eqn, [_read(env, a) for a in eqn.invars]), strict=True))
    return [_read(env, a) for a in body.outvars]


def _read(env: Mapping[Any, Made], atom: Any) -> Made:
    if internals.is_literal(atom):
        return ZERO if _all_zero(atom.val) else 0
    return env.get(atom, 0)


def _all_zero(value: Any) -> bool:
    size = getattr(value, "size", 1)
    return isinstance(size, int) and size <= 1 and isinstance(value, (int, float, np.generic, np.ndarray)) \
        and not np.any(value)


def _equation(eqn: Any, given: list[Made]) -> list[Made]:
    name = eqn.primitive.name
    body = internals.called(eqn)
    if body is not None:
        return _run(body, given)
    if name == "cond":
        several = [_run(branch, given[1:]) for branch in eqn.params["branches"]]
        return [_joined(parts) for parts in zip(*several, strict=True)]
    if name in ("scan", "while"):
        return _loop(eqn, given)
    values = given[SELECTORS.get(name, 0):]  # what only chooses is no part of the value
    nothing = (any(p is ZERO for p in values) if name in PRODUCTS else given[0] is ZERO if name in FIRST and given
               else False)
    return [ZERO if nothing else _kept(name, values)] * len(eqn.outvars)


def _kept(name: str, values: Sequence[Made]) -> Made:
    """Sums and choices of zeros are zero; other functions of zeros are constants."""
    joined = _joined(values)
    if joined is ZERO and name in ("add", "sub", "add_any", "select_n", "max", "min", "concatenate", "pad", "gather",
                                   "dynamic_slice", "scatter-add", "dynamic_update_slice"):
        return ZERO
    return joined or 0


def _joined(values: Sequence[Made]) -> Made:
    found: Made = ZERO
    for value in values:
        if value is not ZERO:
            found = (found or 0) | value
    return found


def _loop(eqn: Any, given: list[Made]) -> list[Made]:
    """What is carried may be zero only if it stays so: followed until nothing more is added."""
    params = eqn.params
    if eqn.primitive.name == "scan":
        consts, carries, body = params["num_consts"], params["num_carry"], params["jaxpr"]
        fixed, carry, rows = given[:consts], given[consts:consts + carries], given[consts + carries:]
    else:
        tests, consts = params["cond_nconsts"], params["body_nconsts"]
        body = params["body_jaxpr"]
        fixed, carry, rows = given[tests:tests + consts], given[tests + consts:], []
    results: list[Made] = []
    for _ in range(2 * len(carry) + 2):
        results = _run(body, [*fixed, *carry, *rows])
        joined = [_joined(pair) for pair in zip(carry, results, strict=False)]
        if joined == carry:
            break
        carry = joined
    return [*carry, *results[len(carry):]]
