"""Follows the calls of a jitted step: keeps the arguments of the last two, and notices where one goes wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.experiments.replaying.symptom import Course, Symptom
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.paths.marked import Marks
from traindx_tools.on_jax.probe import Call
from traindx_tools.on_jax.replaying.kept import Scenario, arrays_for, function_of_call
from traindx_tools.on_jax.tracing import Traced, dynamic_leaves, dynamic_numbers

LOSSES = ("loss", "cost", "nll", "objective", "elbo")


@dataclass
class Following:
    """One jitted function that trains. `traced`: what was compiled for the last call."""

    traced: Traced
    name: str
    course: Course = field(default_factory=Course)
    now: tuple[Any, ...] = ()
    before: tuple[Any, ...] | None = None
    loss: int | None = None
    """The output that is the loss; None where none was recognised."""
    numbers: Sequence[int] = ()
    """Of the jaxpr's inputs among all argument leaves."""
    fed: Mapping[int, int] = field(default_factory=dict)
    _finite: Callable[..., Any] | None = None

    def about(self, call: Call) -> None:
        """A call is about to be made: its arguments are kept, those of the call before stay beside them."""
        self.before = self.now or None
        self.now = tuple(copied(v, call.watched.donates) for v in dynamic_leaves(call.watched, call.args, call.kwargs))
        self.numbers = dynamic_numbers(call.watched, call.args, call.kwargs)

    def made(self, call: Call, leaves: Sequence[Any]) -> Symptom | None:
        """The call was made: what is wrong with its loss or with the state that it gave. Waits for the device."""
        feeding = call.watched.feeding
        at = {n: i for i, n in enumerate(self.numbers)}
        self.fed = {o: at[n] for o, n in (feeding.fed if feeding is not None else {}).items() if n in at}
        if self.loss is None or self.loss in self.fed:
            self.loss = _loss_of(self.traced.outputs, leaves, {*self.fed, *_like_arguments(call)})
        if self.loss is None:
            return None
        value = float(np.asarray(leaves[self.loss]).astype(np.float64))
        found = self.course.loss(value, call.step)
        if found is None and math.isfinite(value) and self.fed and not self._all_finite([leaves[o] for o in self.fed]):
            found = self.course.symptom("parameters", call.step, value)
        return found

    def scenario(self, symptom: Symptom, marks: Mapping[str, tuple[Marks, str]], value: float) -> Scenario:
        """What is run again. Raises NotReplayable with why it cannot be."""
        assert self.loss is not None
        function = function_of_call(self.traced, marks, self.loss)
        now = arrays_for(self.traced, self.now)
        before, why = None, "there was no call before"
        if self.before is not None:
            try:
                before, why = arrays_for(self.traced, self.before), ""
            except NotReplayable as error:
                why = str(error)
        fed = self.fed
        if symptom.kind == "parameters" and not fed:
            raise NotReplayable("what it gives is not given back to it")
        return Scenario(symptom, function, now, before, fed, value, why)

    def let_go(self) -> None:
        """Nothing more is kept."""
        self.now, self.before = (), None

    def _all_finite(self, leaves: Sequence[Any]) -> bool:
        import jax
        import jax.numpy as jnp

        if self._finite is None:
            plain = getattr(jax.jit, "__wrapped__", jax.jit)
            self._finite = plain(lambda values: jnp.stack([jnp.isfinite(v).all() for v in values]).all())
        given = [v for v in leaves if is_inexact(v) and v.size]
        return not given or bool(self._finite(given))


def copied(leaf: Any, donated: bool) -> Any:
    """The array itself, which nobody can change; a copy where the call takes it away, or where numpy may change it."""
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    return leaf.copy() if donated and hasattr(leaf, "copy") and hasattr(leaf, "dtype") else leaf


def _loss_of(names: Sequence[str], leaves: Sequence[Any], state: Collection[int]) -> int | None:
    scalars = [i for i, x in enumerate(leaves) if i not in state and is_inexact(x) and getattr(x, "ndim", 1) == 0]
    named = [i for i in scalars if i < len(names) and any(word in names[i].lower() for word in LOSSES)]
    return next(iter(named or scalars), None)


def _like_arguments(call: Call) -> Iterator[int]:
    """The outputs that have, together, the types of one argument's leaves: its state, before it was fed back."""
    import jax

    def types(tree: Any) -> list[tuple[Any, ...]]:
        return [(getattr(x, "shape", ()), str(getattr(x, "dtype", ""))) for x in jax.tree_util.tree_leaves(tree)]

    given = [t for a in (*call.args, *call.kwargs.values()) if len(t := types(a)) > 1]
    output, start = call.output, 0
    parts: Any = [output]
    if isinstance(output, (tuple, list, dict)):
        parts = [output[k] for k in sorted(output)] if isinstance(output, dict) else output
    for part in parts:
        found = types(part)
        if found in given:
            yield from range(start, start + len(found))
        start += len(found)
