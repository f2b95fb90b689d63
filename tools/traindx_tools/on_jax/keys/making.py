"""What makes keys (seeds, splits, folds) and what uses them (draws and splits)."""

from __future__ import annotations

from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.keys.course import MOST_KEYS, Around, Flow, fresh, name_of
from traindx_tools.on_jax.keys.naming import Value, as_raw
from traindx_tools.on_jax.keys.uses import DRAW, SPLIT, Use
from traindx_tools.on_jax.places import calls_around, place_of


def _use(flow: Flow, kind: str, eqn: Any, value: Value, around: Around) -> None:
    """Remembers that every key in an array is used."""
    stack = f"{around.level.stack}/{internals.stack(eqn)}"
    if value.ids is None or around.again or "transpose" in stack or "rematted" in stack:
        return
    order = flow.count()
    place = place_of(eqn, around.level.place)
    calls = (*calls_around(eqn), *around.calls)
    for name in value.ids.reshape(-1).tolist():
        for key in (name, *flow.names.facts[name].stands_for):
            loops = around.loops if key == name else around.loops[:-1]
            flow.uses.append(Use(key, kind, eqn.primitive.name, place, around.level.path, around.branches, loops,
                                 order, calls))


def draw(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    _use(flow, DRAW, eqn, given[0], around)
    whole = name_of(flow.names, eqn, given)
    return [Value(flow.names.of("output", i, parts=(whole,))) for i in range(len(eqn.outvars))]


def split(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    _use(flow, SPLIT, eqn, given[0], around)
    whole = name_of(flow.names, eqn, given)
    aval = eqn.outvars[0].aval
    if given[0].ids is None or np.prod(aval.shape) > MOST_KEYS:
        return [fresh(flow.names, aval, ("split",), None, (whole,))]
    count = int(np.prod(aval.shape[given[0].ids.ndim:], dtype=np.int64))
    parts = [flow.names.each(given[0].ids, "child", i, count) for i in range(count)]
    return [Value(whole, np.stack(parts, axis=-1).reshape(aval.shape) if parts else np.zeros(aval.shape, np.int64))]


def fold_in(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    whole = name_of(flow.names, eqn, given)
    keys, data = given
    aval = eqn.outvars[0].aval
    if keys.ids is None or np.prod(aval.shape) > MOST_KEYS:
        return [fresh(flow.names, aval, ("folded",), None, (whole,))]
    spread = np.broadcast_to(keys.ids, aval.shape) if keys.ids.shape != aval.shape else keys.ids
    if data.known is not None:
        told = [int(d) for d in np.broadcast_to(data.known, aval.shape).reshape(-1)]
        flat = [flow.names.of("folded in", d, parts=(int(k),)) for k, d in zip(spread.reshape(-1), told, strict=True)]
        return [Value(whole, np.array(flat, np.int64).reshape(aval.shape))]
    single = not getattr(eqn.invars[1].aval, "shape", ())
    flat = [flow.names.of("folded in", 0 if single else i, parts=(int(k), data.name))
            for i, k in enumerate(spread.reshape(-1))]
    return [Value(whole, np.array(flat, np.int64).reshape(aval.shape))]


def seeded(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    aval = eqn.outvars[0].aval
    known = given[0].known
    if known is not None and not aval.shape:
        return [Value(whole, np.array(whole)) for whole in [flow.names.of("seeded", int(known))]]
    return [fresh(flow.names, aval, ("seeded",), None, (given[0].name,))]


def wrap(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    aval, raw = eqn.outvars[0].aval, given[0].ids
    if raw is None or raw.shape[-1] != 2:
        return [fresh(flow.names, aval, ("wrapped",), None, (given[0].name,))]
    firsts, seconds = raw[..., 0], raw[..., 1]
    if bool(((firsts // 2 == seconds // 2) & (firsts % 2 == 0) & (seconds % 2 == 1)).all()):
        return [Value(flow.names.of("wrapped", parts=(given[0].name,)), np.asarray(firsts // 2))]
    return [fresh(flow.names, aval, ("wrapped",), None, (given[0].name,))]


def unwrap(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    whole = flow.names.of("unwrapped", parts=(given[0].name,))
    if given[0].ids is None or eqn.outvars[0].aval.shape[-1:] != (2,):
        return [Value(whole)]
    return [Value(whole, as_raw(given[0].ids))]


def clone(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    """A clone may be used again: that is what it is for."""
    return [fresh(flow.names, eqn.outvars[0].aval, ("clone", flow.count()), None, (given[0].name,))]


HANDLERS = {"random_bits": draw, "random_gamma": draw, "random_split": split, "random_fold_in": fold_in,
            "random_seed": seeded, "random_wrap": wrap, "random_unwrap": unwrap, "random_clone": clone}
