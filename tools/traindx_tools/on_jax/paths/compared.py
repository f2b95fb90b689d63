"""Which whole numbers the inputs of a jaxpr are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals

VIEWS = frozenset({"slice", "dynamic_slice", "reshape", "squeeze", "broadcast_in_dim", "transpose", "copy", "rev",
                   "expand_dims", "convert_element_type", "optimization_barrier", "sharding_constraint"})
"""What gives the same ids in another form."""


def compared_with(jaxpr: Any) -> dict[int, set[int]]:
    """By input, the numbers that `eq` and `ne` compare it with, or a part of it."""
    found: dict[int, set[int]] = {}
    given = [i if _is_whole(v.aval) else None for i, v in enumerate(jaxpr.jaxpr.invars)]
    _run(jaxpr, given, [None] * len(given), found)
    return found


def _is_whole(aval: Any) -> bool:
    return getattr(getattr(aval, "dtype", None), "kind", "") in "iu"


def _run(jaxpr: Any, views: Sequence[int | None], numbers: Sequence[int | None], found: dict[int, set[int]],
         ) -> list[int | None]:
    """The inputs that the outputs are views of. `numbers`: those that are known of the inputs."""
    body = jaxpr.jaxpr
    view = {v: i for v, i in zip(body.invars, views, strict=False) if i is not None}
    number = {v: n for v, n in zip(body.invars, numbers, strict=False) if n is not None}
    number.update({v: n for v, c in zip(body.constvars, jaxpr.consts, strict=True) if (n := _number(c)) is not None})
    for eqn in body.eqns:
        came = [_of(view, a) for a in eqn.invars]
        known = [_number(a.val) if internals.is_literal(a) else number.get(a) for a in eqn.invars]
        name = eqn.primitive.name
        if name in ("eq", "ne"):
            _compare(came, known, found)
        elif name in VIEWS and came:
            if came[0] is not None:
                view[eqn.outvars[0]] = came[0]
            if known[0] is not None:
                number[eqn.outvars[0]] = known[0]
        else:
            view.update({v: i for v, i in zip(eqn.outvars, _inner(eqn, name, came, known, found), strict=False)
                         if i is not None})
    return [_of(view, a) for a in body.outvars]


def _inner(eqn: Any, name: str, came: list[int | None], known: list[int | None],
           found: dict[int, set[int]]) -> list[int | None]:
    called = internals.called(eqn)
    if called is not None:
        return _run(called, came, known, found)
    if name == "scan":
        _run(eqn.params["jaxpr"], came, known, found)
    elif name == "cond":
        for branch in eqn.params["branches"]:
            _run(branch, came[1:], known[1:], found)
    return []


def _of(view: Mapping[Any, int], atom: Any) -> int | None:
    return None if internals.is_literal(atom) else view.get(atom)


def _compare(came: list[int | None], known: list[int | None], found: dict[int, set[int]]) -> None:
    for one, other in ((0, 1), (1, 0)):
        view, number = came[one], known[other]
        if view is not None and number is not None:
            found.setdefault(view, set()).add(number)


def _number(value: Any) -> int | None:
    """A whole number, also one in an array without axes, or of one element."""
    if isinstance(value, bool) or getattr(value, "size", 1) != 1:
        return None
    try:
        told = np.asarray(value)
    except Exception:  # noqa: BLE001 - a key, or an array that is gone
        return None
    return int(told.reshape(-1)[0]) if told.dtype.kind in "iu" else None
