"""Always on: the norm of the gradient of each parameter where a call returns gradients, beside J301 and J302."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.paths.measured import FEWEST, FEWEST_LOOKS, Measured, judged
from traindx_tools.on_jax.paths.norms import norms_of
from traindx_tools.on_jax.paths.reach import is_float
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.tracing import Traced, argument_names, lowered, type_of
from traindx_tools.on_jax.watched import Watched

LOOKS = frozenset({2, 3, 5, 9, 13, 29, 53, 101, 203, 403, 803})
"""Calls of a function whose gradients are measured."""
MOST_EQUATIONS = 40_000


@dataclass
class Returned:
    """What is known of one function. `pairs`: the leaf of the gradient in the output, its parameter's in the input."""

    watched: Watched
    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    traced: Traced | None = None
    looks: dict[int, Any] = field(default_factory=dict)
    """By call: the norms of the gradients, then those of their parameters, on the device."""


class Gradients(JaxProbe):
    """Eager `grad` and `value_and_grad`, and jitted functions that return gradients in the structure of an argument."""

    name = "gradients"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, Returned | None] = {}
        """None: its gradients are not visible."""

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Recognises outputs that are gradients: made by a backward pass, of the types of one argument."""
        number = call.watched.number
        if call.watched.kind != "jit" or number in self._functions or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        self._functions[number] = None
        traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
        pairs = tuple(gradient_pairs(traced, call.watched.differentiates))
        if pairs and traced.positions:
            self._functions[number] = Returned(call.watched, tuple(traced.inputs[i] for _, i in pairs), pairs, traced)

    def after_call(self, call: Call) -> None:
        """Measures in some calls; nothing waits for it."""
        if call.step not in LOOKS:
            return
        number = call.watched.number
        if number not in self._functions:
            self._functions[number] = eager_gradients(call) if call.watched.kind != "jit" else None
        known = self._functions[number]
        if known is None:
            return
        import jax

        given = jax.tree_util.tree_leaves((call.args, call.kwargs))
        leaves = call.leaves or jax.tree_util.tree_leaves(call.output)
        if max(i for _, i in known.pairs) >= len(given) or max(o for o, _ in known.pairs) >= len(leaves):
            return
        arrays = [leaves[o] for o, _ in known.pairs] + [given[i] for _, i in known.pairs]
        if all(is_inexact(a) and not getattr(a, "is_deleted", bool)() for a in arrays):
            known.looks[call.step] = norms_of(arrays)

    def finish(self) -> Iterable[Finding]:
        """Writes the last norms of each function, and judges those that were zero."""
        for known in self._functions.values():
            if known is None or not known.looks or _is_state(known):
                continue
            steps = sorted(known.looks)
            told = np.stack([np.asarray(known.looks[s]) for s in steps])
            norms = dict(zip(known.names, map(float, told[-1]), strict=False))
            self.scene.recorder.mark("gradient_norms", function=known.watched.name, call=steps[-1], norms=norms)
            if known.traced is not None and len(steps) >= FEWEST_LOOKS and steps[-1] - steps[0] >= FEWEST:
                count = len(known.names)
                yield from judged(Measured(known.traced, known.names, tuple(i for _, i in known.pairs),
                                           frozenset(o for o, _ in known.pairs), told[:, :count], told[:, count:],
                                           tuple(steps)))


def _is_state(known: Returned) -> bool:
    """Whether what was taken for gradients comes back as an argument."""
    feeding = known.watched.feeding
    return feeding is not None and any(output in feeding.fed for output, _ in known.pairs)


def gradient_pairs(traced: Traced, differentiates: bool) -> Iterator[tuple[int, int]]:
    """Outputs that are gradients of inputs, by their positions in the jaxpr.

    Releases before 0.5 do not mark the backward pass: there every output of an argument's types may be one, and what
    turns out to be state is left out at the end.
    """
    body = traced.jaxpr.jaxpr
    backward: set[Any] = set()
    for eqn in body.eqns:
        named = eqn.primitive.name == "name" and not backward.isdisjoint(  # a value that `paths/marked.py` names
            a for a in eqn.invars if not internals.is_literal(a))
        backward |= set(eqn.outvars) if named or "transpose" in internals.stack(eqn) else set()
    unmarked = differentiates and not backward
    arguments: dict[str, list[int]] = {}
    for i, name in enumerate(traced.inputs if traced.positions else ()):
        arguments.setdefault(name.split("[")[0].split(".")[0], []).append(i)
    given = [(positions, [type_of(body.invars[i].aval) for i in positions]) for positions in arguments.values()]
    for output in _groups(traced.outputs):
        made = any(not internals.is_literal(body.outvars[o]) and body.outvars[o] in backward for o in output)
        types = [type_of(body.outvars[o].aval) for o in output]
        inputs = next((a for a, held in given if held == types), None)
        if (made or unmarked) and inputs is not None and all(is_float(body.invars[i].aval) for i in inputs):
            yield from zip(output, inputs, strict=True)


def _groups(names: Sequence[str]) -> list[list[int]]:
    """Outputs together by the first part of their names; all of them where they have but one."""
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        found.setdefault(name.split("]")[0], []).append(i)
    whole = [list(range(len(names)))] if len(found) > 1 else []
    return [*found.values(), *whole]


def eager_gradients(call: Call) -> Returned | None:
    """The gradients of one argument that an eager `grad` or `value_and_grad` returned."""
    import jax

    position, kind = call.watched.argnums, call.watched.kind
    if not isinstance(position, int) or not 0 <= position < len(call.args):
        return None
    if kind != "grad" and not isinstance(call.output, tuple):
        return None
    given = jax.tree_util.tree_leaves(call.args[position])
    loss, grads = (None, call.output) if kind == "grad" else (call.output[0], call.output[1])
    start, found = len(jax.tree_util.tree_leaves(loss)), jax.tree_util.tree_leaves(grads)[:len(given)]
    if not given or [type_of(g) for g in found] != [type_of(g) for g in given]:
        return None
    names = argument_names(call.watched, call.args, call.kwargs)
    before = len(jax.tree_util.tree_leaves(call.args[:position]))
    told = tuple(names[before:before + len(given)])
    return Returned(call.watched, told, tuple((start + k, before + k) for k in range(len(given))))
