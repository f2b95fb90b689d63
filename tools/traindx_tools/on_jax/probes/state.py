"""Always on: state that a step drops, parameters that no gradient reaches or that no update changes (J301, J70x)."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from traindx_tools.experiments.trace import PARTS
from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.paths.blocked import CUT
from traindx_tools.on_jax.paths.dead import dropped_state
from traindx_tools.on_jax.paths.feeding import fed_by
from traindx_tools.on_jax.paths.gradient import blocked_inputs, stopped_on_purpose
from traindx_tools.on_jax.paths.reach import Reach, is_float, reach
from traindx_tools.on_jax.paths.updates import closed_state
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import (
    j301_no_gradient_path,
    j701_state_not_fed_back,
    j702_state_dropped,
    j703_parameters_unchanged,
    j708_left_out_among_siblings,
)
from traindx_tools.on_jax.state import reference
from traindx_tools.on_jax.tracing import Traced, lowered, type_of
from traindx_tools.on_jax.watched import Watched
from traindx_tools.on_weights.initialisers import FEWEST as SMALLEST
from traindx_tools.on_weights.initialisers import bounded_draw
from traindx_tools.program.siblings import Weight, left_out

LOOKS = (3, 13, 53, 203, 803)
"""Calls of a function in which the sums of its state are taken."""
FEWEST = 10
"""Calls between two looks, and calls with one state, from which they count."""
MOST_EQUATIONS = 40_000


@dataclass
class _Function:
    """What is known of one function. `sums`: by call, the sums of each array of state."""

    watched: Watched
    traced: Traced
    trains: bool
    passed: frozenset[int] = frozenset()
    """Outputs that are an input as it came in."""
    sums: dict[int, Any] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    halves: list[bool] = field(default_factory=list)
    same: dict[str, list[Any]] | None = None
    """Arguments that were the same objects in all calls so far: references to their arrays."""
    shapes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    calls: int = 0

    @cached_property
    def reach(self) -> Reach:
        """The ways through its jaxpr."""
        return reach(self.traced.jaxpr)

    @cached_property
    def trained(self) -> int:
        """As bits, the inputs to which gradients have a way from a scalar output: parameters, not moments or averages.

        Asked for at the end, when it is known what comes back in the next call.
        """
        found = 0
        for output in _scalars(self):
            found |= self.reach.outputs[output].smooth
        return found


class State(JaxProbe):
    """Compares what a step carries on between calls that lie far apart, and reads its jaxpr for what it drops."""

    name = "state"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function] = {}
        self._sums: Any = None

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Reads the jaxpr for dropped state and for parameters that no gradient reaches."""
        if call.watched.number in self._functions or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
        trains = call.watched.differentiates or any("transpose" in internals.stack(e) for e in jaxpr.jaxpr.eqns)
        known = _Function(call.watched, traced, trains)
        self._functions[call.watched.number] = known
        inputs = set(jaxpr.jaxpr.invars)
        known.passed = frozenset(i for i, v in enumerate(jaxpr.jaxpr.outvars)
                                 if not internals.is_literal(v) and v in inputs)
        if trains:
            for dropped in dropped_state(jaxpr, traced.inputs, traced.name):
                for finding in j702_state_dropped.check(dropped):
                    self.scene.recorder.finding(finding)

    def after_call(self, call: Call) -> None:
        """Takes sums in some calls, and follows which arguments stay the same."""
        known = self._functions.get(call.watched.number)
        if known is None:
            return
        known.calls = call.step
        if known.trains and call.step <= 2 * FEWEST:
            self._identities(known, call)
        feeding = call.watched.feeding
        if call.step in LOOKS and known.trains and feeding is not None and feeding.fed:
            self._take(known, call, feeding.fed)

    def _take(self, known: _Function, call: Call, fed: dict[int, int]) -> None:
        import jax

        leaves = call.leaves or jax.tree_util.tree_leaves(call.output)
        if not known.outputs:
            known.outputs = [i for i in sorted(fed) if i < len(leaves) and is_inexact(leaves[i])
                             and leaves[i].size > 0 and leaves[i].ndim > 0]
            known.halves = [str(leaves[i].dtype) in ("bfloat16", "float16") for i in known.outputs]
        if known.outputs and max(known.outputs) < len(leaves):
            known.sums[call.step] = self._summed([leaves[i] for i in known.outputs])

    def _summed(self, arrays: list[Any]) -> Any:
        """For each array its sum, one with weights, that of its sizes, the least and the largest value and the root
        mean square, on the device."""
        if self._sums is None:
            import jax
            import jax.numpy as jnp

            def sums(value: Any) -> Any:
                t = value.reshape(-1).astype(jnp.float32)
                return jnp.stack([t.sum(), (t * jnp.cos(jnp.arange(t.size, dtype=jnp.float32))).sum(),
                                  jnp.abs(t).sum(), t.min(), t.max(), jnp.sqrt(jnp.square(t).mean())])

            self._sums = getattr(jax.jit, "__wrapped__", jax.jit)(sums)
        return [self._sums(a) for a in arrays]  # one program a shape: one for all takes minutes to compile

    def _identities(self, known: _Function, call: Call) -> None:
        """Which arguments are made of the same arrays as in the call before."""
        import jax

        now: dict[str, list[Any]] = {}
        leaves = jax.tree_util.tree_flatten_with_path((call.args, call.kwargs))[0]
        names = known.traced.inputs if len(known.traced.inputs) == len(leaves) else ()
        for name, (_, leaf) in zip(names, leaves, strict=False):
            root = name.split("[")[0].split(".")[0]
            now.setdefault(root, []).append(reference(leaf) or leaf)
            if call.step == 1:
                known.shapes[root] = (*known.shapes.get(root, ()), type_of(leaf))
        before = known.same
        known.same = now if before is None else {r: x for r, x in now.items() if r in before and _alike(before[r], x)}

    def finish(self) -> Iterable[Finding]:
        """What was seen over the whole program."""
        for known in self._functions.values():
            yield from self._unchanged(known)
            yield from self._not_fed_back(known)

    def _unchanged(self, known: _Function) -> Iterable[Finding]:
        taken = sorted(known.sums)
        if len(taken) < 2 or taken[-1] - taken[0] < FEWEST:
            return
        first, last = np.asarray(known.sums[taken[0]]), np.asarray(known.sums[taken[-1]])
        same, finite = (first == last).all(axis=1), np.isfinite(last).all(axis=1)
        fed = known.watched.feeding.fed if known.watched.feeding is not None else {}
        count = len(known.traced.inputs)
        everything = {fed[o]: k for k, o in enumerate(known.outputs) if fed.get(o, count) < count and finite[k]}
        state = {i: k for i, k in everything.items() if known.outputs[k] not in known.passed}
        still = {i for i, k in state.items() if same[k]}
        calls = taken[-1] - taken[0]
        told = yield from self._without_gradient(known, state, still, calls)
        moving = {k for k in range(len(known.outputs)) if not same[k] or not finite[k]}
        own = {i: k for i, k in everything.items() if known.trained >> i & 1 and i not in told}
        yield from self._left_out(known, {i: (first[k], bool(same[k])) for i, k in own.items()}, calls)
        rest = [i for i in state if i in still - told and known.trained >> i & 1 and float(last[state[i]][2]) > 0]
        if rest:
            names = [known.traced.inputs[i] for i in rest]
            half = all(known.halves[state[i]] for i in rest)
            yield from j703_parameters_unchanged.check(
                known.watched.name, names, calls, len(rest) + len([m for m in moving if self._counts(known, m, fed)]),
                half, known.watched.place, self._drawn(known, {i: last[state[i]] for i in rest}))

    def _left_out(self, known: _Function, seen: Mapping[int, tuple[Any, bool]], calls: int) -> Iterable[Finding]:
        """What stays as it was drawn among trained siblings. `seen`: the first sums by input, and whether it stayed."""
        jaxpr, names = known.traced.jaxpr, known.traced.inputs
        feeding = known.watched.feeding
        fed_back = feeding.fed if feeding is not None else {}
        alone = {fed_back[o] for o in known.passed if o in fed_back} | closed_state(jaxpr, fed_back, 0)
        still = [i for i, (_, same) in seen.items() if same and i in alone]
        if not still:
            return
        if len(still) < len(seen):
            self.scene.recorder.mark(PARTS, parts={"held": f"{names[still[0]]} and so in all {len(still)} of the "
                                     f"{len(seen)} arrays that {known.watched.name} differentiates did not change "
                                     f"in {calls} calls"})
        fed = fed_by(jaxpr, still, [i for i in seen if i not in still])
        shapes = {i: tuple(int(n) for n in jaxpr.jaxpr.invars[i].aval.shape) for i in seen}
        weights = [Weight(names[i], shapes[i], float(sums[0]) / max(1, math.prod(shapes[i])), float(sums[5]), not same,
                          i in fed) for i, (sums, same) in seen.items() if not same or i in still]
        yield from j708_left_out_among_siblings.check(left_out(weights), known.watched.name, calls, known.watched.place)

    def _drawn(self, known: _Function, values: Mapping[int, Any]) -> tuple[str, ...]:
        """The arrays with the initialisers of which they still are draws; none where a matrix among them is no draw."""
        found: list[str] = []
        for i, sums in values.items():
            shape = tuple(int(n) for n in known.traced.jaxpr.jaxpr.invars[i].aval.shape)
            if len(shape) < 2 or math.prod(shape) < SMALLEST:
                continue
            dtype = str(known.traced.jaxpr.jaxpr.invars[i].aval.dtype)
            told = bounded_draw(shape, dtype, *(float(v) for v in sums[3:6]))
            if told is None:
                return ()
            found.append(f"{known.traced.inputs[i]} ({told.name})")
        return tuple(found)

    def _without_gradient(self, known: _Function, state: Mapping[int, int], still: set[int],
                          calls: int) -> Generator[Finding, None, set[int]]:
        """J301 for inputs that did not move, or that move by themselves alone; returns those inputs."""
        outputs, jaxpr = _scalars(known), known.traced.jaxpr
        fed = known.watched.feeding.fed if known.watched.feeding is not None else {}
        closed = closed_state(jaxpr, fed, known.trained) & set(state) - still
        inputs = sorted((still | closed) - stopped_on_purpose(jaxpr))
        told: set[int] = set()
        for blocked in blocked_inputs(known.traced, known.reach, inputs, outputs):
            if blocked.kind == CUT:
                told |= {i for i in inputs if known.traced.inputs[i] in blocked.names}
                decaying = tuple(n for n in blocked.names if known.traced.inputs.index(n) in closed)
                yield from j301_no_gradient_path.check(replace(blocked, unchanged_calls=calls, decaying=decaying))
        return told

    def _counts(self, known: _Function, output: int, fed: dict[int, int]) -> bool:
        index = fed.get(known.outputs[output])
        return index is not None and index < len(known.traced.inputs) and bool(known.trained >> index & 1)

    def _not_fed_back(self, known: _Function) -> Iterable[Finding]:
        feeding = known.watched.feeding
        if not known.trains or known.calls < FEWEST or known.same is None or feeding is None:
            return
        jaxpr = known.traced.jaxpr.jaxpr
        roots: dict[str, list[int]] = {}
        for i, name in enumerate(known.traced.outputs):
            roots.setdefault(name.split("]")[0] + "]" if name.startswith("[") else name, []).append(i)
        for argument in known.same:
            types = known.shapes.get(argument, ())
            if len(types) < 2 or not any(t[0] for t in types):
                continue
            for output, leaves in roots.items():
                told = tuple((tuple(jaxpr.outvars[i].aval.shape), str(jaxpr.outvars[i].aval.dtype)) for i in leaves)
                if told == types and not any(i in feeding.fed or i in known.passed for i in leaves):
                    yield from j701_state_not_fed_back.check(known.watched.name, argument, output, known.calls,
                                                             len(leaves), known.watched.place)
                    break


def _scalars(known: _Function) -> list[int]:
    feeding = known.watched.feeding
    fed = feeding.fed if feeding is not None else {}
    return [i for i, v in enumerate(known.traced.jaxpr.jaxpr.outvars)
            if i not in fed and not internals.is_literal(v) and is_float(v.aval) and not v.aval.shape]


def _alike(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether these are the same arrays: a reference to one that is gone is none of them."""
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
