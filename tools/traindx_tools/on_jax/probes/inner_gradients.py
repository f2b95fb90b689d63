"""On demand: the norms of gradients that stay inside a jitted step, from a second function of the step's inputs.

In some calls that function runs before the step: a forward and a backward pass more, and one compilation. What the
program computes is not changed, and arguments that it donates are still there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.paths.belonging import parameter_of, types_of
from traindx_tools.on_jax.paths.marked import Marks, marked_in, norms_of_marked, speaks_outside
from traindx_tools.on_jax.paths.measured import FEWEST, FEWEST_LOOKS, Measured, judged
from traindx_tools.on_jax.paths.norms import norms_of
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.tracing import Traced, dynamic_leaves, lowered, type_of
from traindx_tools.on_jax.watched import Watched

LOOKS = frozenset({2, 3, 5, 9, 13, 29, 53, 101, 203, 403, 803, *range(1603, 100_000, 1600)})
"""Calls of a function in which its gradients are computed once more."""
MOST_EQUATIONS = 40_000

Key = tuple[str, "tuple[str, int] | None", tuple[str, ...]]
"""Which gradient: `Marks.key`."""


@dataclass
class _Function:
    """One jitted function. `labels`: what is measured; `keys`: for each the gradient that it is of; `inputs`: for each
    the parameter among the jaxpr's inputs."""

    watched: Watched
    traced: Traced
    labels: tuple[str, ...]
    keys: tuple[Key, ...]
    names: tuple[str, ...]
    inputs: tuple[int | None, ...]
    norms: Callable[..., Any]
    looks: dict[int, Any] = field(default_factory=dict)
    """By call: the norms of the gradients, then those of their parameters, on the device."""
    written: int = 0


class InnerGradients(JaxProbe):
    """Norm by parameter of what `grad` and `value_and_grad` give within jit; the total as `grad_norm`.

    Where a program asks for several gradients (two networks that play against each other, an inner and an outer loop)
    each is written too: `grad_norm/<function>`, with the line where names are equal. The total is that of the first
    jitted function that has gradients.
    """

    name = "inner-gradients"
    looks_before = True
    marks_gradients = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._marks: dict[str, tuple[Marks, str]] = {}
        """By label: the gradient that it belongs to, and the leaf's name."""
        self._functions: dict[int, _Function] = {}
        self._titles: dict[Key, str] = {}
        """What each gradient is called."""
        self._first: frozenset[Key] = frozenset()

    def marked(self, marks: Marks) -> None:
        """A gradient was marked while its function was traced."""
        self._marks.update({label: (marks, name) for label, name in marks.names.items()})

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Makes the second function where the compiled one holds marked gradients."""
        number = call.watched.number
        if call.watched.kind != "jit" or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        labels = tuple(label for label in marked_in(jaxpr) if label in self._marks)
        if not labels:
            return
        traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
        if not traced.positions or speaks_outside(jaxpr):
            say(f"the gradients within {call.watched.name} are not measured: " + (
                "its arguments cannot be told apart" if not traced.positions else "it calls the host for a result"))
            return
        known = self._functions.get(number)
        names = tuple(self._marks[label][1] for label in labels)
        found = tuple(parameter_of(n, v, traced) for n, v in zip(names, types_of(jaxpr, labels), strict=True))
        told = tuple(traced.inputs[i] if i is not None else n for n, i in zip(names, found, strict=True))
        keys = tuple(self._marks[label][0].key for label in labels)
        made = _Function(call.watched, traced, labels, keys, told, found, norms_of_marked(jaxpr))
        self._titles.update(titles(keys, self._titles))
        self._first = self._first or frozenset(keys)
        if known is not None and known.names == told:  # another signature of the same step: its looks go on
            made.looks, made.written = known.looks, known.written
        self._functions[number] = made

    def before_call(self, call: Call) -> None:
        """Sends the norms of some calls on their way; nothing waits for them."""
        known = self._functions.get(call.watched.number) if call.step in LOOKS else None
        if known is None:
            return
        given = dynamic_leaves(call.watched, call.args, call.kwargs)
        if [type_of(g) for g in given] != [type_of(v.aval) for v in known.traced.jaxpr.jaxpr.invars]:
            return  # this call is for another signature
        grads = known.norms(*given)
        held = [given[i] for i in known.inputs if i is not None and is_inexact(given[i])]
        known.looks[call.step] = (grads, norms_of(held) if held else None)

    def after_call(self, call: Call) -> None:
        """Writes what has arrived."""
        known = self._functions.get(call.watched.number)
        if known is not None and len(known.looks) > known.written:
            self._write(known, wait=False)

    def _write(self, known: _Function, *, wait: bool) -> None:
        for step in sorted(known.looks)[known.written:]:
            grads = known.looks[step][0]
            if not wait and not getattr(grads, "is_ready", lambda: True)():
                return
            known.written += 1
            self.scene.recorder.metrics(step, self._norms(known, np.asarray(grads, dtype=np.float64)))

    def _norms(self, known: _Function, grads: Any) -> dict[str, float]:
        told = {"grad_norm": _total(grads)} if self._first & set(known.keys) else {}
        if len(self._titles) > 1:
            for key in dict.fromkeys(known.keys):
                told[f"grad_norm/{self._titles[key]}"] = _total(grads[[k == key for k in known.keys]])
        return told

    def finish(self) -> Iterable[Finding]:
        """Writes the last norms of each function, and judges those that were zero."""
        for known in self._functions.values():
            if not known.looks:
                continue
            self._write(known, wait=True)
            steps = sorted(known.looks)
            grads = np.stack([np.asarray(known.looks[s][0]) for s in steps])
            self._table(known, steps[-1], grads[-1])
            if any(i is not None for i in known.inputs) and len(steps) >= FEWEST_LOOKS \
                    and steps[-1] - steps[0] >= FEWEST:
                yield from judged(_measured(known, steps, grads))

    def _table(self, known: _Function, step: int, grads: Any) -> None:
        """The last norms by parameter, of each gradient."""
        for key in dict.fromkeys(known.keys):
            norms = {n: float(g) for n, g, k in zip(known.names, grads, known.keys, strict=True) if k == key}
            told = {"gradient": self._titles[key]} if len(self._titles) > 1 else {}
            self.scene.recorder.mark("gradient_norms", function=known.traced.name, call=step, norms=norms, **told)


def _measured(known: _Function, steps: Sequence[int], grads: Any) -> Measured:
    """What was measured by parameter: one that has several gradients has none where all of them are zero."""
    values = np.stack([np.asarray(known.looks[s][1]) for s in steps])
    held = [k for k, i in enumerate(known.inputs) if i is not None]
    inputs = tuple(dict.fromkeys(known.inputs[k] for k in held))
    several = [[k for k in held if known.inputs[k] == i] for i in inputs]
    feeding = known.watched.feeding
    return Measured(
        known.traced, tuple(known.names[ks[0]] for ks in several), tuple(i for i in inputs if i is not None),
        frozenset(), np.stack([np.sqrt(np.square(grads[:, ks]).sum(axis=1)) for ks in several], axis=1),
        values[:, [held.index(ks[0]) for ks in several]], tuple(steps), feeding.fed if feeding is not None else {})


def titles(keys: Sequence[Key], taken: Mapping[Key, str]) -> dict[Key, str]:
    """A name for each gradient that has none yet: its function, with line and argument where others have that name."""
    new = [k for k in dict.fromkeys(keys) if k not in taken]
    found: dict[Key, str] = {}
    for function, place, roots in new:
        base = function.strip("<>")
        line = f"{base}:{place[1]}" if place is not None else base
        steps = (base, line, f"{line} {' '.join(roots)}")
        known = {*taken.values(), *found.values()}
        alike = sum(k[0] == function for k in new)
        chosen = next((n for n in steps[1 if alike > 1 and place is not None else 0:] if n not in known), None)
        found[function, place, roots] = chosen or f"{line} {len(known)}"
    return found


def _total(norms: Any) -> float:
    return math.sqrt(float(np.sum(np.square(norms))))
