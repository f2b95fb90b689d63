"""Which inputs of a jaxpr reach which outputs, and on which of these ways a gradient comes back.

A way is cut where a derivative is zero or undefined by construction: stop_gradient, rounding, sign, comparisons,
argmax, casts to integers, the predicate of a select. Functions with derivatives of their own (custom_jvp, custom_vjp)
are taken to pass gradients. Branches of a cond are followed apart, so that what only some of them pass is known. Every
equation that cuts is a source of its own from there on: what lies behind it, and whether the loss sends a gradient
back to it, is known for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.ends import (
    CHOICE,
    COMPARISON,
    ESTIMATED,
    ESTIMATOR,
    FORK,
    STEP,
    STOP,
    TARGET,
    WRONG_SIDE,
    Cut,
    ordered,
    role_of,
)
from traindx_tools.on_jax.paths.estimators import Sums, bits_of, is_exchanged
from traindx_tools.on_jax.places import Place, place_of, within_jax

FLAT = frozenset({"stop_gradient", "round", "floor", "ceil", "sign", "argmax", "argmin", "is_finite", "nextafter",
                  "population_count", "clz", "eq", "ne", "lt", "le", "gt", "ge"})
"""Primitives whose derivative is zero everywhere, or none at all."""
OWN_DERIVATIVE = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"})
SELECTORS = {"select_n": 1, "cond": 1, "dynamic_slice": 0, "gather": 0, "clamp": 0}
"""How many first inputs only choose."""
LAYERS = frozenset({"dot_general", "conv_general_dilated", "ragged_dot_general", "ragged_dot"})


@dataclass(frozen=True)
class Ways:
    """Inputs (as bits) that a value depends on at all; by a way that gradients take; by one in every branch.

    Beyond the inputs' bits: the backward pass, and for each end two, for the end itself and for it behind a layer.
    """

    any: int = 0
    smooth: int = 0
    sure: int = 0

    def __or__(self, other: Ways) -> Ways:
        return Ways(self.any | other.any, self.smooth | other.smooth, self.sure | other.sure)


@dataclass
class _End:
    """An equation at which ways end. `inputs`: what comes to it; `first`: with a gradient's way up to it."""

    op: str
    place: Place | None
    role: str
    bit: int
    inner: bool
    """Whether JAX applied it within a function of its own."""
    inputs: int = 0
    first: int = 0
    covers: int = 0
    """Of an estimator: the ends that it leads past."""


@dataclass
class Reach:
    """What was found: the ways of each output, and the ends in order."""

    count: int
    outputs: list[Ways] = field(default_factory=list)
    ends: dict[tuple[int, Place | None], _End] = field(default_factory=dict)
    singles: int = 0
    """The bits of the ends themselves."""
    hard: int = 0
    """Those of ends that are a step or a choice."""

    @property
    def backward(self) -> int:
        """The bit of what the backward pass made."""
        return 1 << self.count

    def losses(self, outputs: Sequence[int]) -> list[Ways]:
        """Those of the outputs that can be a loss: some input gets a gradient; not made of gradients, if others are."""
        told = [self.outputs[o] for o in outputs]
        trained = [w for w in told if w.smooth & (self.backward - 1)] or told
        return [w for w in trained if not w.any & self.backward] or trained

    def cuts(self, bit: int, outputs: Sequence[int]) -> tuple[Cut, ...]:
        """Every end on the ways of one input to these outputs, the one to change first."""
        losses = self.losses(outputs)
        anyhow, smooth = _joined(losses).any, _joined(losses).smooth
        told = [e for e in self.ends.values() if e.inputs & bit and e.bit & anyhow
                and (e.first & bit or not (e.inner or e.role == COMPARISON))]
        covered = 0
        for end in self.ends.values():
            covered |= end.covers if end.bit & anyhow else 0
        return ordered([Cut(e.op, e.place, _role(e, covered, smooth)) for e in told])


def _role(end: _End, covered: int, smooth: int) -> str:
    if end.role in (STEP, CHOICE) and end.bit & covered:
        return ESTIMATED
    if end.role == STOP and end.bit & smooth and not end.bit << 1 & smooth:
        return TARGET
    return end.role


def reach(jaxpr: Any) -> Reach:
    """The ways from the inputs of a closed jaxpr to its outputs."""
    found = Reach(len(jaxpr.jaxpr.invars))
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
    stops = []
    for eqn in jaxpr.jaxpr.eqns:
        told = [_read(env, a) for a in eqn.invars]
        env.update(zip(eqn.outvars, _equation(found, eqn, told, around), strict=True))
        if eqn.primitive.name == "stop_gradient":
            stops.append(eqn)
    if stops:
        _estimators(found, jaxpr.jaxpr, stops, env, around)
    return [_read(env, a) for a in jaxpr.jaxpr.outvars]


def _read(env: Mapping[Any, Ways], atom: Any) -> Ways:
    return Ways() if internals.is_literal(atom) else env.get(atom, Ways())


def _equation(found: Reach, eqn: Any, given: list[Ways], around: Place | None) -> list[Ways]:
    name = eqn.primitive.name
    body = internals.called(eqn)
    if body is not None and name not in OWN_DERIVATIVE:
        return _run(found, body, given, place_of(eqn, around))
    if name == "cond":
        return _branches(found, eqn, given, place_of(eqn, around))
    if name in ("scan", "while"):
        return _loop(found, eqn, given, place_of(eqn, around))
    everything = _joined(given)
    back = found.backward if "transpose" in internals.stack(eqn) else 0
    passed = Ways(everything.any | back)
    if name not in FLAT:
        told = _joined(given[SELECTORS.get(name, 0):])
        passed = Ways(passed.any, told.smooth | _behind(found, name, given), told.sure)
    outputs = [passed if is_float(v.aval) else Ways(passed.any) for v in eqn.outvars]
    return list(_ended(found, eqn, around, given, outputs))


def _behind(found: Reach, name: str, given: Sequence[Ways]) -> int:
    """The bits, behind a layer, of ends that go into one side of it."""
    if name not in LAYERS or len(given) < 2:
        return 0
    return ((given[0].smooth ^ given[1].smooth) & found.singles) << 1


def _ended(found: Reach, eqn: Any, around: Place | None, given: Sequence[Ways], outputs: list[Ways]) -> Iterator[Ways]:
    """The outputs of an equation; where ways end in it, it is a source of its own from there on."""
    name = eqn.primitive.name
    ends = name in FLAT or not all(is_float(v.aval) for v in eqn.outvars)
    inputs = [w for w, a in zip(given, eqn.invars, strict=True) if w.any and is_float(a.aval)] if ends else []
    # softmax stops the gradient of its maximum, rightly
    if not inputs or (name == "stop_gradient" and within_jax(eqn)):
        yield from outputs
        return
    came = _joined(inputs)
    end = _end(found, eqn, place_of(eqn, around))
    end.inputs |= came.any
    end.first |= came.smooth
    for variable, way in zip(eqn.outvars, outputs, strict=True):
        if name in FLAT and is_float(variable.aval):
            yield Ways(way.any | end.bit, way.smooth | end.bit, way.sure)
        else:
            yield way if is_float(variable.aval) else Ways(way.any | end.bit)


def _end(found: Reach, eqn: Any, place: Place | None, op: str = "", role: str = "") -> _End:
    known = found.ends.get((id(eqn), place))
    if known is None:
        name = op or eqn.primitive.name
        role = role or role_of(name)
        bit = 1 << (found.count + 1 + 2 * len(found.ends))
        known = _End(name, place, role, bit, role not in (COMPARISON, FORK) and within_jax(eqn))
        found.ends[id(eqn), place] = known
        found.singles |= bit
        found.hard |= bit if role in (STEP, CHOICE) else 0
    return known


def _estimators(found: Reach, body: Any, stops: Sequence[Any], env: Mapping[Any, Ways], around: Place | None) -> None:
    """Says which stop_gradients of a body belong to straight-through estimators, right or wrong way round."""
    sums = Sums(body)
    for eqn in stops:
        end = found.ends.get((id(eqn), place_of(eqn, around)))
        told = sums.estimator(eqn) if end is not None else None
        if end is None or told is None:
            continue
        passed, hidden = (bits_of(side, env, found.hard) for side in (told.passed, told.hidden))
        end.role = WRONG_SIDE if is_exchanged(passed, hidden) else ESTIMATOR
        end.covers = 0 if end.role == WRONG_SIDE else hidden & ~passed


def _joined(ways: Sequence[Ways]) -> Ways:
    anyhow = smooth = sure = 0
    for way in ways:
        anyhow, smooth, sure = anyhow | way.any, smooth | way.smooth, sure | way.sure
    return Ways(anyhow, smooth, sure)


def _branches(found: Reach, eqn: Any, given: list[Ways], place: Place | None) -> list[Ways]:
    results = [_run(found, branch, given[1:], place) for branch in eqn.params["branches"]]
    came = _joined(given[1:]).sure
    outputs = []
    for several in zip(*results, strict=True):
        sure = several[0].sure
        for way in several[1:]:
            sure &= way.sure
        both = _joined(several)
        told = both.any | given[0].any
        some = came & both.smooth & ~sure
        if some:
            fork = _end(found, eqn, place, role=FORK)
            fork.inputs, fork.first, told = fork.inputs | some, fork.first | some, told | fork.bit
        outputs.append(Ways(told, both.smooth, sure))
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
        results = _run(found, body, [*fixed, *carry, *rows], place)
        joined = [a | b for a, b in zip(carry, results, strict=False)]
        if joined == list(carry):
            break
        carry = joined
    return [*carry, *results[len(carry):]]
