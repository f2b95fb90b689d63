"""What is kept of a jitted step so that it can be run again: its jaxpr, and the arguments of its last two calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.experiments.replaying.symptom import Symptom
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.belonging import parameter_of, types_of
from traindx_tools.on_jax.paths.marked import Marks, marked_in, speaks_outside
from traindx_tools.on_jax.tracing import Traced

MOST_EQUATIONS = 40_000
_STATE_OF_OPTIMIZERS = ("opt", ".mu", ".nu", ".trace", ".count", "ema", "target")


@dataclass(frozen=True, eq=False)
class Function:
    """One signature of a jitted step. `parameters`: inputs that a gradient within it is of."""

    traced: Traced
    parameters: tuple[int, ...]
    loss: int
    """The output that is its loss."""
    gradients: tuple[str, ...] = ()
    """The names of what is differentiated within it, in the order of the marks."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A symptom and two calls: the one that shows it, and the one before, whose outputs are its state.

    `now`, `before`: the arguments, in the order of the jaxpr's inputs. `fed`: input by output, for what a call gives
    the next one.
    """

    symptom: Symptom
    function: Function
    now: tuple[Any, ...]
    before: tuple[Any, ...] | None
    fed: Mapping[int, int]
    value: float
    """The loss."""
    no_update: str = field(default="")

    @property
    def state(self) -> tuple[int, ...]:
        """The inputs that the last update made: what is fed back, else the parameters."""
        return tuple(sorted(set(self.fed.values()))) or self.function.parameters

    @property
    def keys(self) -> tuple[int, ...]:
        """The inputs that are random keys."""
        return tuple(i for i, v in enumerate(self.now) if is_key(v))

    @property
    def batch(self) -> tuple[int, ...]:
        """The inputs that are neither state, parameters nor keys."""
        other = {*self.state, *self.function.parameters, *self.keys}
        return tuple(i for i, v in enumerate(self.now) if i not in other and len(getattr(v, "shape", ())))

    def rows(self) -> tuple[int, tuple[int, ...]]:
        """How many rows the batch has, and the inputs that have them. Raises NotReplayable where it has none."""
        given = self.batch
        if self.before is not None:
            changing = tuple(i for i in given if self.now[i] is not self.before[i])
            given = changing or given
        if not given:
            raise NotReplayable("the batch has no rows that could be told apart")
        count = int(self.now[max(given, key=lambda i: self.now[i].size)].shape[0])
        if count < 2:
            raise NotReplayable("the batch has no rows that could be told apart")
        return count, tuple(i for i in given if self.now[i].shape[0] == count)


def is_key(value: Any) -> bool:
    """A random key: of a type of its own, or two or four numbers of 32 bits."""
    if not hasattr(value, "dtype"):
        return False
    plain = value.dtype == np.uint32 and getattr(value, "shape", ()) in ((2,), (4,))
    return internals.is_typed_key(value) or bool(plain)


def function_of_call(traced: Traced, marks: Mapping[str, tuple[Marks, str]], loss: int) -> Function:
    """What is known of a compiled step. Raises NotReplayable where its calls cannot be made again."""
    jaxpr = traced.jaxpr
    if not traced.positions and traced.inputs:
        raise NotReplayable("its arguments cannot be told apart")
    if internals.size(jaxpr) > MOST_EQUATIONS:
        raise NotReplayable(f"it has more than {MOST_EQUATIONS:,} operations")
    if speaks_outside(jaxpr):
        raise NotReplayable("it calls the host for a result")
    labels = [label for label in marked_in(jaxpr) if label in marks]
    found = [_input(marks[label][1], aval, traced) for label, aval in zip(labels, types_of(jaxpr, labels), strict=True)]
    names = tuple(marks[label][1] for label in labels)
    return Function(traced, tuple(dict.fromkeys(i for i in found if i is not None)), loss, names)


def _input(name: str, aval: Any, traced: Traced) -> int | None:
    found = parameter_of(name, aval, traced)
    if found is not None:
        return found
    same = [i for i, v in enumerate(traced.jaxpr.jaxpr.invars)
            if (v.aval.shape, v.aval.dtype) == (aval.shape, aval.dtype)
            and not any(word in traced.inputs[i] for word in _STATE_OF_OPTIMIZERS)]
    return same[0] if len(same) == 1 else None


def arrays_for(traced: Traced, leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Argument leaves as arrays of the types that the jaxpr wants. Raises NotReplayable for another signature."""
    import jax.numpy as jnp

    wanted = [v.aval for v in traced.jaxpr.jaxpr.invars]
    if len(wanted) != len(leaves):
        raise NotReplayable("its arguments cannot be told apart")
    made = []
    for aval, leaf in zip(wanted, leaves, strict=True):
        value = leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf, getattr(aval, "dtype", None))
        if tuple(value.shape) != tuple(aval.shape) or str(value.dtype) != str(aval.dtype):
            raise NotReplayable("the call before was made with arguments of other shapes or dtypes")
        made.append(value)
    return tuple(made)
