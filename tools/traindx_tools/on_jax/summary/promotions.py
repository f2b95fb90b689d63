"""Large arrays that a promotion makes wider: a half-precision array meets a float32 one, and the product stays wide."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.marks import OPTIMIZERS
from traindx_tools.on_jax.paths.reach import is_float
from traindx_tools.on_jax.places import USER, Place, owner, place_of

PROMOTERS = frozenset({"promote_dtypes", "promote_args", "promote_dtype"})
"""Functions of JAX and flax that give arguments a common dtype."""
CASTS = frozenset({"astype", "_astype", "asarray", "array", "convert_element_type", "__call__"})
"""Functions that are asked for a dtype; `__call__` is that of `jnp.float32`, the ufuncs' own is told apart."""
FEWEST_BYTES = 2**20
"""Bytes that a promotion adds from which it is looked at."""
ENDS = frozenset({"dot_general", "conv_general_dilated", "scan", "while", "ragged_dot"})
"""Operations that read a large array as it is: what comes before them, element by element, is fused by XLA."""
MOST_EQUATIONS = 40_000


@dataclass(frozen=True)
class Promoted:
    """An array that became wider. `other`: what it met, such as `float32[8]`; `added`: bytes."""

    before: str
    after: str
    shape: tuple[int, ...]
    other: str
    added: int
    place: Place | None


@dataclass(frozen=True)
class _Flat:
    """An equation with the values it reads and makes, across calls."""

    eqn: Any
    given: tuple[Any, ...]
    made: tuple[Any, ...]
    place: Place | None
    backward: bool


def promotions(jaxpr: Any) -> list[Promoted]:
    """The promotions of large arrays that reach a matrix product, a convolution or a loop in the wider dtype.

    Weak types (Python numbers) promote nothing. What is cast back before, what optimizers do to hold wide moments and
    what the backward pass does are left out.
    """
    if internals.size(jaxpr) > MOST_EQUATIONS:
        return []
    found: dict[Any, Promoted] = {}
    for it in _found(jaxpr, None, False):
        found.setdefault((it.place, it.before, it.shape), it)
    return list(found.values())


def _found(jaxpr: Any, around: Place | None, backward: bool) -> Iterator[Promoted]:
    flat = list(_flat(jaxpr, around, backward, {}))
    uses: dict[Any, list[_Flat]] = {}
    for item in flat:
        for value in item.given:
            if value is not None:
                uses.setdefault(value, []).append(item)
    for item in flat:
        if not item.backward:
            promoted = _promoted(item, uses)
            if promoted is not None:
                yield promoted
        for _, body in () if internals.called(item.eqn) is not None else internals.inner_jaxprs(item.eqn):
            yield from _found(body, item.place, item.backward)


def _flat(jaxpr: Any, around: Place | None, backward: bool, outside: Mapping[Any, Any],
          level: tuple[int, ...] = ()) -> Generator[_Flat, None, list[Any]]:
    """Equations with calls opened; what stands for the outputs is returned.

    `outside`: what stands for each input of the body; `level`: the calls around it.
    """
    names = dict(outside)

    def name(atom: Any) -> Any:
        return None if internals.is_literal(atom) else names.get(atom, (level, atom))

    for number, eqn in enumerate(jaxpr.jaxpr.eqns):
        place = place_of(eqn, around)
        back = backward or "transpose" in internals.stack(eqn)
        given = tuple(name(a) for a in eqn.invars)
        inner = internals.called(eqn)
        if inner is None:
            yield _Flat(eqn, given, tuple(name(v) for v in eqn.outvars), place, back)
            continue
        own = dict(zip(inner.jaxpr.invars, given, strict=True))
        made = yield from _flat(inner, place, back, own, (*level, number))
        names.update(zip(eqn.outvars, made, strict=True))
    return [name(v) for v in jaxpr.jaxpr.outvars]


def _promoted(item: _Flat, uses: dict[Any, list[_Flat]]) -> Promoted | None:
    eqn = item.eqn
    if eqn.primitive.name != "convert_element_type":
        return None
    before, after = eqn.invars[0].aval, eqn.outvars[0].aval
    if not is_float(before) or not is_float(after) or after.dtype.itemsize <= before.dtype.itemsize:
        return None
    added = int(np.prod(after.shape, dtype=np.int64)) * (after.dtype.itemsize - before.dtype.itemsize)
    if added < FEWEST_BYTES or getattr(before, "weak_type", False):
        return None
    if not _by_promotion(eqn):
        return None
    if item.place is not None and (item.place.library or "").startswith(OPTIMIZERS):
        return None
    other = _met(item, uses, after.dtype)
    if other is None or not _stays_wide(item.made[0], uses, after.dtype):
        return None
    return Promoted(str(before.dtype), str(after.dtype), tuple(after.shape), other, added, item.place)


def _by_promotion(eqn: Any) -> bool:
    """Whether no cast was written: neither by the user nor by the library that the user called."""
    names = set()
    for file, _, function in internals.frames(eqn):
        if owner(file) is USER:
            break
        if not function.startswith("ufunc."):
            names.add(function.rpartition(".")[2])
    return bool(names & PROMOTERS) or not names & CASTS


def _stays_wide(value: Any, uses: dict[Any, list[_Flat]], dtype: Any) -> bool:
    """Whether it reaches an operation that reads it as it is, without being made narrow or small before."""
    waiting, seen = [value], set[Any]()
    while waiting:
        one = waiting.pop()
        if one in seen or len(seen) > 2000:
            continue
        seen.add(one)
        for use in uses.get(one, ()):
            if use.eqn.primitive.name in ENDS:
                return True
            for variable, made in zip(use.eqn.outvars, use.made, strict=True):
                wide = getattr(variable.aval, "dtype", None) == dtype
                large = int(np.prod(variable.aval.shape, dtype=np.int64)) * dtype.itemsize >= FEWEST_BYTES
                if wide and large:
                    waiting.append(made)
    return False


def _met(item: _Flat, uses: dict[Any, list[_Flat]], dtype: Any) -> str | None:
    """The operand of the wider dtype that it met; reshapes and broadcasts of the promoted one are followed."""
    value = item.made[0]
    for _ in range(4):
        for use in uses.get(value, ()):
            others: Sequence[Any] = [a for a, g in zip(use.eqn.invars, use.given, strict=True)
                                     if g != value and getattr(a.aval, "dtype", None) == dtype]
            if others:
                return f"{others[0].aval.dtype}[{','.join(map(str, others[0].aval.shape))}]"
        following = next((u for u in uses.get(value, ()) if len(u.made) == 1), None)
        if following is None:
            break
        value = following.made[0]
    return None
