"""Integer overflows: what an integer equation gave is compared with the exact result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.on_jax.nonfinite.values import Stats, measure
from traindx_tools.on_jax.places import Place, place_of

MOST_ELEMENTS = 2**22
"""Elements of an integer array that are checked: more would make the evaluation slow."""
Exact = Callable[[Any, Sequence[np.ndarray[Any, Any]]], np.ndarray[Any, Any]]

_EXACT: dict[str, Exact] = {
    "add": lambda e, v: v[0] + v[1],
    "sub": lambda e, v: v[0] - v[1],
    "mul": lambda e, v: v[0] * v[1],
    "integer_pow": lambda e, v: v[0] ** e.params["y"],
    "pow": lambda e, v: v[0] ** v[1],
    "reduce_sum": lambda e, v: v[0].sum(axis=tuple(e.params["axes"])),
    "reduce_prod": lambda e, v: v[0].prod(axis=tuple(e.params["axes"])),
    "cumsum": lambda e, v: np.flip(np.flip(v[0], e.params["axis"]).cumsum(e.params["axis"]), e.params["axis"])
    if e.params.get("reverse") else v[0].cumsum(e.params["axis"]),
}


@dataclass(frozen=True)
class Wrapped:
    """An integer equation whose exact result does not fit its dtype."""

    number: int
    op: str
    place: Place | None
    path: tuple[str, ...]
    dtype: str
    exact: float
    """The result of largest magnitude."""
    inputs: tuple[Stats, ...]


def found_in(eqn: Any, values: Sequence[Any], outputs: Sequence[Any], known: list[Wrapped],
             level: Any) -> frozenset[int]:
    """The number of the overflow that this equation is, added to the known ones; empty where it is none.

    Unsigned integers wrap on purpose (hashes, random numbers) and are left out; so is a cast of a float.
    """
    exact = _EXACT.get(eqn.primitive.name)
    if exact is None or len(outputs) != 1:
        return frozenset()
    dtype = getattr(outputs[0], "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind != "i" or np.size(outputs[0]) > MOST_ELEMENTS:
        return frozenset()
    if any(np.size(v) > MOST_ELEMENTS for v in values):
        return frozenset()
    with np.errstate(all="ignore"):
        result = np.asarray(exact(eqn, [np.asarray(v).astype(np.float64) for v in values]), dtype=np.float64)
    limits = np.iinfo(dtype)
    over = (result > float(limits.max)) | (result < float(limits.min))
    if not bool(over.any()):
        return frozenset()
    worst = float(result.flat[int(np.argmax(np.abs(result)))])
    made = Wrapped(len(known), eqn.primitive.name, place_of(eqn, level.place), level.path, str(dtype), worst,
                   tuple(measure(v) for v in values))
    known.append(made)
    return frozenset({made.number})
