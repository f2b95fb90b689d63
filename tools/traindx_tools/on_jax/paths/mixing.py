"""`sample_dependence`: does the output for one sample depend on the inputs of others, and where do they meet?

The function is traced once and its jaxpr evaluated three times side by side: as given, and with one of two samples
changed. An element that moves with both depends on both; the first equation that makes one on the way to an output
that mixes samples is named. Nothing is assumed about where intermediate values keep their samples.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.values import is_inexact, measurable, on_host
from traindx_tools.on_jax.places import Place, place_of
from traindx_tools.on_jax.tracing import Traced, trace

RELATIVE = 1e-6
"""Changes below this share of a value are rounding: sums in another order."""
CONTAINERS = frozenset({"scan", "while", "cond", "shard_map"})
Three = tuple[Any, Any, Any]
"""A value as given, with the first sample changed, and with the second."""


@dataclass(frozen=True)
class Meeting:
    """An equation of whose output an element depends on two samples."""

    op: str
    place: Place | None


@dataclass
class _Walk:
    """What was met so far, in the order of execution."""

    met: list[Meeting] = field(default_factory=list)
    until: float = math.inf
    """When to give up, as `time.monotonic` counts."""


def sample_dependence(fn: Callable[..., Any], *args: Any, in_axes: Any = 0, out_axes: int = 0) -> list[Finding]:
    """Outputs of `fn` whose samples depend on each other, or lie on another axis than `out_axes` (J401).

    `in_axes` as for `jax.vmap`, one number or None for each argument (None: shared, such as parameters); `fn` takes
    the whole batch. Two samples of the batch are changed, one at a time: give at least three different ones. It is
    evaluated on these arrays. Raises BadUsage where the axes do not fit the arrays, and what tracing raises.
    """
    axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
    if len(axes) != len(args):
        raise BadUsage(f"in_axes has {len(axes)} entries for {len(args)} arguments: give one for each, None for what "
                       "all samples share")
    count = _samples(args, axes)
    traced = trace(fn, args, {})
    found: list[Finding] = []
    for second in dict.fromkeys((1, count // 2, count - 1)):  # neighbours meet in a reshape, others in what is far
        found = _compared(traced, args, axes, (0, second), out_axes, count)
        if not found or any(f.where.line is not None for f in found):
            break
    return found


def rows_that_mix(name: str, jaxpr: Any, values: Sequence[Any], rows: frozenset[int], count: int,
                  seconds: float) -> list[Finding]:
    """Outputs with a row for each of `count` rows of some inputs (`rows`, by number) where these are mixed (J401).

    The jaxpr is evaluated on these values: the function is neither called nor traced. An output with `count` places on
    two axes compares rows by design. Nothing is found where it takes longer than `seconds`.
    """
    from traindx_tools.on_jax.rules import j401_depends_on_other_samples as rule

    until = time.monotonic() + seconds
    for second in dict.fromkeys((1, count // 2, count - 1)):
        threes: list[Three] = [(v, *(_changed(v, 0 if i in rows else None, which, 7 + i) for which in (0, second)))
                               for i, v in enumerate(values)]
        walk = _Walk(until=until)
        try:
            outputs = _run(walk, jaxpr, threes, None)
        except TimeoutError:
            return []
        for base, one, other in outputs:
            shape = np.shape(base)
            outcome = _judged(base, one, other, 0, second, 0, count) if shape[:1] == (count,) else None
            if outcome is not None and outcome[1] is None and outcome[0] and count not in shape[1:]:
                met = next(iter(walk.met), None)
                return list(rule.check(rule.Mixed(name, met.op if met else "", met.place if met else None, outcome[0],
                                                  count, 0, "", tuple(shape), below_zero=_below_zero(values, met))))
    return []


def _below_zero(values: Sequence[Any], met: Meeting | None) -> float:
    """Where samples meet in a look-up: the share of numbers below zero among the whole numbers that are given."""
    if met is None or met.op != "gather":
        return 0.0
    whole = [v for v in values if np.ndim(v) and measurable(v) and np.asarray(v).dtype.kind == "i"]
    return max((float((np.asarray(v) < 0).mean()) for v in whole), default=0.0)


def _compared(traced: Traced, args: Sequence[Any], axes: Sequence[Any], pair: tuple[int, int], out_axes: int,
              count: int) -> list[Finding]:
    """The findings where these two samples are changed."""
    import jax

    from traindx_tools.on_jax.rules import j401_depends_on_other_samples as rule

    leaves = jax.tree_util.tree_leaves(tuple(args))
    given = [[_changed(leaf, _axis_of(i, args, axes), which, 7 + i) for i, leaf in enumerate(leaves)] for which in pair]
    outputs, walk = _evaluated(traced, args, given)
    found: list[Finding] = []
    for i, (base, one, other) in enumerate(outputs):
        outcome = _judged(base, one, other, *pair, out_axes, count)
        if outcome is not None:
            moved, axis = outcome
            met = next(iter(walk.met), None) if axis is None else None
            it = rule.Mixed(traced.name, met.op if met else "", met.place if met else None, moved, count, out_axes,
                            traced.outputs[i], tuple(np.shape(base)), axis)
            found += rule.check(it)
    return found


def _samples(args: Sequence[Any], axes: Sequence[Any]) -> int:
    import jax

    sizes: dict[int, str] = {}
    for number, (value, axis) in enumerate(zip(args, axes, strict=True)):
        for leaf in jax.tree_util.tree_leaves(value) if axis is not None else ():
            shape = np.shape(leaf)
            if not -len(shape) <= axis < len(shape):
                raise BadUsage(f"argument {number} has shape {shape} and no axis {axis}: None is for what all samples "
                               "share")
            sizes.setdefault(shape[axis], f"axis {axis} of argument {number}, of shape {shape}")
    if len(sizes) != 1:
        raise BadUsage("in_axes names " + ("no argument that has samples" if not sizes else "axes of different sizes: "
                       + "; ".join(f"{size} on {where}" for size, where in sizes.items())))
    count = int(next(iter(sizes)))
    if count < 2:
        raise BadUsage(f"{count} sample is not enough: give at least two different ones")
    return count


def _axis_of(index: int, args: Sequence[Any], axes: Sequence[Any]) -> Any:
    """The axis of the argument that a leaf belongs to."""
    import jax

    for value, axis in zip(args, axes, strict=True):
        leaves = len(jax.tree_util.tree_leaves(value))
        if index < leaves:
            return axis
        index -= leaves
    raise IndexError(index)


def _changed(leaf: Any, axis: int | None, which: int, seed: int) -> Any:
    """The array with another content in one sample: noise of its size, or what another sample holds."""
    import jax.numpy as jnp

    if axis is None or not measurable(leaf):
        return leaf
    array = np.array(np.asarray(leaf))
    place: list[Any] = [slice(None)] * array.ndim
    place[axis] = which
    here = array[tuple(place)]
    if is_inexact(leaf):
        numbers = on_host(leaf)
        noise = np.random.default_rng(seed).normal(size=np.shape(here))
        scale = float(np.abs(numbers).max()) or 1.0
        array[tuple(place)] = (on_host(here) + 0.5 * scale * noise).astype(array.dtype)
    else:
        array[tuple(place)] = _another(array, axis, here)
    return jnp.asarray(array, getattr(leaf, "dtype", None))


def _another(array: Any, axis: int, here: Any) -> Any:
    """What a sample with another content holds; reversed where all are the same."""
    for i in range(array.shape[axis]):
        there = np.take(array, i, axis)
        if not np.array_equal(there, here):
            return there
    return ~here if array.dtype.kind == "b" else here[..., ::-1] if np.ndim(here) else here


def _evaluated(traced: Traced, args: Sequence[Any], given: Sequence[Sequence[Any]]) -> tuple[list[Three], _Walk]:
    """The outputs three times, and where samples met."""
    import jax

    leaves = jax.tree_util.tree_leaves(tuple(args))
    kept = [i for i, leaf in enumerate(leaves) if any(leaf is v for v in traced.values)]
    threes: list[Three] = []
    for value in traced.values:
        i = next(k for k in kept if leaves[k] is value)
        kept.remove(i)
        threes.append((value, given[0][i], given[1][i]))
    walk = _Walk()
    return _run(walk, traced.jaxpr, threes, None), walk


def _run(walk: _Walk, jaxpr: Any, values: Sequence[Three], around: Place | None) -> list[Three]:
    body = jaxpr.jaxpr
    env: dict[Any, Three] = {v: (c, c, c) for v, c in zip(body.constvars, jaxpr.consts, strict=True)}
    env.update(zip(body.invars, values, strict=True))

    def read(atom: Any) -> Three:
        return (atom.val,) * 3 if internals.is_literal(atom) else env[atom]

    needed = _needed(body)
    for index, eqn in enumerate(body.eqns):
        if index not in needed:
            continue
        if time.monotonic() > walk.until:
            raise TimeoutError
        told = [read(a) for a in eqn.invars]
        outputs = _equation(walk, eqn, told, place_of(eqn, around))
        env.update((v, o) for v, o in zip(eqn.outvars, outputs, strict=True) if not internals.is_dropped(v))
    return [read(a) for a in body.outvars]


def _needed(body: Any) -> set[int]:
    """The equations that reach an output."""
    wanted = {v for v in body.outvars if not internals.is_literal(v)}
    found = set()
    for index in range(len(body.eqns) - 1, -1, -1):
        eqn = body.eqns[index]
        if any(v in wanted for v in eqn.outvars):
            found.add(index)
            wanted |= {a for a in eqn.invars if not internals.is_literal(a)}
    return found


def _equation(walk: _Walk, eqn: Any, given: Sequence[Three], place: Place | None) -> list[Three]:
    body = internals.called(eqn)
    if body is not None:
        return _run(walk, body, given, place)
    base = internals.bind(eqn, [g[0] for g in given])
    runs = [base if all(g[i] is g[0] for g in given) else internals.bind(eqn, [g[i] for g in given]) for i in (1, 2)]
    outputs = list(zip(base, runs[0], runs[1], strict=True))
    if not any(_both(g) for g in given) and any(_both(o) for o in outputs):
        if eqn.primitive.name == "scan":
            _enter(walk, eqn, given, place)
        walk.met.append(Meeting(eqn.primitive.name, place))
    return outputs


def _enter(walk: _Walk, eqn: Any, given: Sequence[Three], place: Place | None) -> None:
    """Goes through the iterations of a scan until samples meet in one."""
    params = eqn.params
    consts, carries = params["num_consts"], params["num_carry"]
    carry, rows = list(given[consts:consts + carries]), given[consts + carries:]
    order = range(params["length"])
    before = len(walk.met)
    for i in reversed(order) if params["reverse"] else order:
        sliced: list[Three] = [(r[0][i], r[1][i], r[2][i]) for r in rows]
        carry = _run(walk, params["jaxpr"], [*given[:consts], *carry, *sliced], place)[:carries]
        if len(walk.met) > before:
            return


def _moved(base: Any, other: Any) -> Any:
    """Which elements of an array differ by more than rounding."""
    if base is other or not measurable(base):
        return np.zeros(np.shape(base), bool)
    a, b = on_host(base), on_host(other)
    if a.dtype.kind not in "fc":
        return np.asarray(a != b)
    with np.errstate(all="ignore"):
        scale = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)), 1e-30)
        return np.asarray(~((np.abs(a - b) <= RELATIVE * (np.abs(a) + np.abs(b)) + 1e-7 * scale) | (a == b)
                            | (np.isnan(a) & np.isnan(b))))


def _both(three: Three) -> bool:
    base, one, other = three
    if one is base or other is base:
        return False
    return bool((_moved(base, one) & _moved(base, other)).any())


def _judged(base: Any, one: Any, other: Any, first: int, second: int, out_axis: int,
            count: int) -> tuple[int, int | None] | None:
    """How many samples' outputs moved that should not have, and the axis on which samples lie instead; None: fine."""
    moved = [_moved(base, one), _moved(base, other)]
    shape = np.shape(base)
    fits = -len(shape) <= out_axis < len(shape) and shape[out_axis] == count
    if fits:
        wrong = [_where(m, out_axis) - {w} for m, w in zip(moved, (first, second), strict=True)]
        if not any(wrong):
            return None
    elsewhere = next((a for a in _axes(shape, count, out_axis)
                      if all(_where(m, a) <= {w} for m, w in zip(moved, (first, second), strict=True))
                      and any(m.any() for m in moved)), None)
    if elsewhere is not None:
        return 0, elsewhere
    return (max(map(len, wrong)), None) if fits else None


def _axes(shape: tuple[int, ...], count: int, but: int) -> Iterator[int]:
    yield from (a for a, size in enumerate(shape) if size == count and a != but % max(len(shape), 1))


def _where(moved: Any, axis: int) -> set[int]:
    """The places along an axis at which something moved."""
    rest = tuple(a for a in range(moved.ndim) if a != axis % moved.ndim)
    return {int(i) for i in np.flatnonzero(moved.any(axis=rest))}
