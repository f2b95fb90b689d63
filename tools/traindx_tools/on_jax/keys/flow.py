"""Follows the keys of a jaxpr from where they are made to where they are used, without computing anything.

Every value has a name such that equal names mean equal values, and an array of keys has one for each of its elements:
slices, stacks and reshapes of keys are followed exactly, also for raw uint32 keys. Loops are followed once, with names
that say whether a value differs from iteration to iteration. What the backward pass computes again (remat, the rule of
a custom_vjp) uses the keys of the forward pass on purpose and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.keys import loops, making
from traindx_tools.on_jax.keys.course import MOST_KEYS, Around, Flow, Handler, fresh, is_key, may_be_raw, name_of
from traindx_tools.on_jax.keys.moving import CHOOSING, COUNTING, MOVES, PARTING
from traindx_tools.on_jax.keys.naming import Facts, Ids, Names, Value, as_raw
from traindx_tools.on_jax.tracing import Traced

MOST_KNOWN = 256
"""Elements of an integer array whose values are followed."""


def follow(traced: Traced) -> Flow:
    """The keys of a traced function."""
    flow = Flow(body=run)
    given = [_argument(flow.names, v.aval, n) for v, n in zip(traced.jaxpr.jaxpr.invars, traced.inputs, strict=True)]
    flow.inputs = given
    run(flow, traced.jaxpr, given, Around())
    return flow


def _argument(names: Names, aval: Any, name: str) -> Value:
    return fresh(names, aval, ("argument", name), Facts(arguments=frozenset({name})))


def _constant(names: Names, value: Any) -> Value:
    aval = _aval(value)
    data = _bytes(value)
    if is_key(aval):
        flat = data.reshape(-1, data.shape[-1]) if data is not None else None
        if flat is None or len(flat) > MOST_KEYS:
            return Value(names.of("constant", id(value)))
        ids = np.array([names.of("key", row.tobytes()) for row in flat], np.int64).reshape(np.shape(value))
        return Value(names.of("constant", data.tobytes() if data is not None else id(value)), ids)
    if may_be_raw(aval) and data is not None and data.size <= 2 * MOST_KEYS:
        ids = np.array([names.of("key", row.tobytes()) for row in data.reshape(-1, 2)], np.int64)
        return Value(names.of("constant", data.tobytes()), as_raw(ids.reshape(data.shape[:-1])))
    if data is None or data.size > MOST_KNOWN or data.dtype.kind not in "biu":
        token = data.tobytes() if data is not None and data.size <= MOST_KNOWN else id(value)
        return Value(names.of("constant", token, str(getattr(value, "dtype", ""))))
    return Value(names.of("constant", data.tobytes(), data.shape, str(data.dtype)), known=data)


def _aval(value: Any) -> Any:
    return value if hasattr(value, "dtype") else np.asarray(value)


def _bytes(value: Any) -> np.ndarray[Any, Any] | None:
    import jax

    try:
        return np.asarray(jax.random.key_data(value) if is_key(_aval(value)) else value)
    except (TypeError, ValueError, RuntimeError):  # a deleted array, an array of another process
        return None


def run(flow: Flow, jaxpr: Any, given: Sequence[Value], around: Around) -> list[Value]:
    """Follows one closed jaxpr; its outputs."""
    env: dict[Any, Value] = dict(zip(jaxpr.jaxpr.invars, given, strict=True))
    for variable, value in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True):
        env[variable] = _constant(flow.names, value)

    def read(atom: Any) -> Value:
        return _constant(flow.names, atom.val) if internals.is_literal(atom) else env[atom]

    for eqn in jaxpr.jaxpr.eqns:
        env.update(zip(eqn.outvars, _equation(flow, eqn, [read(a) for a in eqn.invars], around), strict=True))
    return [read(a) for a in jaxpr.jaxpr.outvars]


def _equation(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    name = eqn.primitive.name
    body = internals.called(eqn)
    if body is not None:
        again = around.again or bool(eqn.params.get("differentiated")) or "transpose" in internals.stack(eqn)
        return run(flow, body, given, around.within("", eqn, again=again))
    handled = _handlers().get(name)
    if handled is not None:
        return handled(flow, eqn, given, around)
    if name in PARTING and given[0].ids is not None:
        whole = name_of(flow.names, eqn, given)
        return [Value(flow.names.of("part", i, parts=(whole,)), part)
                for i, part in enumerate(PARTING[name](eqn.params, given[0].ids))]
    moved = _moved(eqn, given)
    if moved is not None:
        return [moved if moved.name >= 0 else Value(name_of(flow.names, eqn, given), moved.ids, moved.known)]
    if len(eqn.outvars) == 1 and name == "select_n" and given[1].ids is not None:
        return [_selected(flow.names, eqn, given)]
    whole = name_of(flow.names, eqn, given)
    return [fresh(flow.names, v.aval, ("output", i), None, (whole,)) for i, v in enumerate(eqn.outvars)]


def _moved(eqn: Any, given: Sequence[Value]) -> Value | None:
    """The keys or known integers behind an operation that moves or counts them; a name of -1 is to be made."""
    name = eqn.primitive.name
    if name in MOVES and given and all(v.ids is not None for v in given):
        return _value(MOVES[name](eqn.params, [v.ids for v in given if v.ids is not None]), None)
    if name == "dynamic_slice" and given[0].ids is not None and all(v.known is not None for v in given[1:]):
        places = [v.known for v in given[1:] if v.known is not None]
        return _value(CHOOSING[name](eqn.params, [given[0].ids, *places]), None)
    if name == "select_n" and given[0].known is not None and all(v.ids is not None for v in given[1:]):
        cases = [v.ids for v in given[1:] if v.ids is not None]
        return _value(CHOOSING[name](eqn.params, [given[0].known, *cases]), None)
    if name == "gather" and given[0].ids is not None and given[1].known is not None:
        return _value(_gathered(eqn, given[0].ids, given[1].known), None)
    counted = {**MOVES, **CHOOSING, **COUNTING}.get(name)
    if counted is None or any(v.known is None for v in given) or len(eqn.outvars) != 1:
        return None
    if np.prod(getattr(eqn.outvars[0].aval, "shape", ())) > MOST_KNOWN:
        return None
    with np.errstate(all="ignore"):
        return _value(None, np.asarray(counted(eqn.params, [v.known for v in given if v.known is not None])))


def _value(ids: Any, known: Any) -> Value:
    return Value(-1, None if ids is None else np.asarray(ids, np.int64), known)


def _gathered(eqn: Any, ids: Ids, indices: Any) -> Ids:
    """A gather on the names of keys: JAX does it itself, on small integers."""
    import jax.numpy as jnp

    table, flat = np.unique(ids, return_inverse=True)
    operand = jnp.asarray(flat.reshape(ids.shape), jnp.int32)
    params = {**eqn.params, "fill_value": 0, "mode": 1}
    try:
        found = eqn.primitive.bind(operand, jnp.asarray(indices), **{**params, "mode": eqn.params["mode"]})
    except Exception:  # noqa: BLE001 - parameters of a gather differ between releases: the keys are then unknown
        return np.full(eqn.outvars[0].aval.shape, -1, np.int64)
    return np.asarray(table[np.asarray(found)], np.int64)


def _selected(names: Names, eqn: Any, given: Sequence[Value]) -> Value:
    cases = [v.ids for v in given[1:]]
    whole = name_of(names, eqn, given)
    if any(c is None for c in cases):
        return fresh(names, eqn.outvars[0].aval, ("selected",), None, (whole,))
    told = [c for c in cases if c is not None]
    if all(np.array_equal(told[0], c) for c in told[1:]):
        return Value(whole, told[0])
    flat = [names.of("select", parts=(given[0].name, *(int(c.reshape(-1)[i]) // _halves(eqn) for c in told)))
            for i in range(told[0].size)]
    ids = np.array(flat, np.int64).reshape(told[0].shape)
    return Value(whole, 2 * ids + told[0] % 2 if _halves(eqn) == 2 else ids)


def _halves(eqn: Any) -> int:
    return 1 if is_key(eqn.outvars[0].aval) else 2


@cache
def _handlers() -> dict[str, Handler]:
    return {**making.HANDLERS, **loops.HANDLERS}
