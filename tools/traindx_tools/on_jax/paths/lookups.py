"""Look-ups in a jaxpr whose indices are inputs as they came, or count up from 0: the table's rows, and the line.

What guards an index (a `where`, a minimum, a modulus, a clip) makes another value of it and is not followed; that JAX
itself adds the rows to a negative index is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.places import Place, place_of

SAME = frozenset({"reshape", "squeeze", "broadcast_in_dim", "transpose", "copy", "rev", "expand_dims",
                  "convert_element_type", "optimization_barrier", "sharding_constraint"})
FILLED = "FILL"
"""In the name of the mode in which what lies beyond is NaN, or left out."""
Cut = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""First, last and step of each axis."""


@dataclass(frozen=True)
class Ids:
    """An input, or one part of it."""

    number: int
    cut: Cut | None = None
    whole: bool = True
    """It has the shape of the input still: a part of it can be told."""


@dataclass(frozen=True)
class Counted:
    """Numbers from 0 up."""

    count: int


@dataclass(frozen=True, eq=False)
class Table:
    """A row of numbers: an input by its number, or a constant of the program."""

    number: int = -1
    values: Any = None


@dataclass(frozen=True)
class _Sign:
    """Whether these are below 0."""

    of: Ids | Counted


@dataclass(frozen=True)
class Lookup:
    """One look-up. `filled`: what lies beyond becomes NaN; otherwise it is taken for the last row."""

    ids: Ids | Counted
    rows: int
    filled: bool
    place: Place | None
    table: Table | None = None
    """Where it is one row of numbers, and an input or a constant as it came."""


def lookups(jaxpr: Any) -> list[Lookup]:
    """All of a closed jaxpr, in order; the backward pass left out."""
    found: list[Lookup] = []
    given = [Ids(i) if _is_whole(v.aval) else Table(i) if _is_row(v.aval) else None
             for i, v in enumerate(jaxpr.jaxpr.invars)]
    _run(jaxpr, given, found, None)
    return found


def _is_whole(aval: Any) -> bool:
    return getattr(getattr(aval, "dtype", None), "kind", "") in "iu" and bool(getattr(aval, "shape", ()))


def _is_row(aval: Any) -> bool:
    """Whether it is one row of floating numbers."""
    return len(getattr(aval, "shape", ())) == 1 and getattr(getattr(aval, "dtype", None), "kind", "") == "f"


def _run(jaxpr: Any, given: Sequence[Any], found: list[Lookup], around: Place | None) -> list[Any]:
    body = jaxpr.jaxpr
    known = {v: k for v, k in zip(body.invars, given, strict=False) if k is not None}
    known.update({v: Table(values=c) for v, c in zip(body.constvars, getattr(jaxpr, "consts", ()), strict=False)
                  if _is_row(v.aval)})
    for eqn in body.eqns:
        came = [None if internals.is_literal(a) else known.get(a) for a in eqn.invars]
        if eqn.primitive.name == "gather":
            _gathered(eqn, came, found, around)
            continue
        made = _made(eqn, came, found, around)
        known.update({v: k for v, k in zip(eqn.outvars, made, strict=False) if k is not None})
    return [None if internals.is_literal(a) else known.get(a) for a in body.outvars]


def _made(eqn: Any, came: list[Any], found: list[Lookup], around: Place | None) -> list[Any]:
    name, called = eqn.primitive.name, internals.called(eqn)
    if called is not None:
        return _run(called, came, found, place_of(eqn, around))
    if name == "scan":
        _run(eqn.params["jaxpr"], came, found, place_of(eqn, around))
        return []
    first = came[0] if came else None
    if name == "iota":
        return [Counted(int(eqn.params["shape"][eqn.params["dimension"]]))]
    if name == "slice":
        return [_part(first, eqn)]
    if name == "lt" and isinstance(first, (Ids, Counted)) and _is_zero(eqn.invars[1]):
        return [_Sign(first)]
    if name == "select_n" and isinstance(first, _Sign):
        return [first.of]
    if name in SAME:
        return [_moved(first) if name not in ("copy", "convert_element_type") else first]
    return []


def _is_zero(atom: Any) -> bool:
    return internals.is_literal(atom) and getattr(atom.val, "size", 1) == 1 and int(atom.val) == 0


def _moved(value: Any) -> Any:
    return Ids(value.number, value.cut, False) if isinstance(value, Ids) else value


def _part(value: Any, eqn: Any) -> Any:
    """A part of an input that has its shape still; parts of counted numbers count as many at most."""
    if isinstance(value, Ids) and value.whole and value.cut is None:
        params = eqn.params
        strides = params["strides"] or (1,) * len(params["start_indices"])
        cut = tuple(params["start_indices"]), tuple(params["limit_indices"]), tuple(strides)
        return Ids(value.number, cut, False)
    return None


def _gathered(eqn: Any, came: list[Any], found: list[Lookup], around: Place | None) -> None:
    numbers = eqn.params["dimension_numbers"]
    ids = came[1] if len(came) > 1 else None
    if not isinstance(ids, (Ids, Counted)) or len(numbers.start_index_map) != 1:
        return
    axis = numbers.start_index_map[0]
    if eqn.params["slice_sizes"][axis] == 1 and "transpose" not in internals.stack(eqn):
        filled = FILLED in str(eqn.params["mode"]).upper()
        table = came[0] if isinstance(came[0], Table) and len(eqn.invars[0].aval.shape) == 1 else None
        found.append(Lookup(ids, int(eqn.invars[0].aval.shape[axis]), filled, place_of(eqn, around), table))
