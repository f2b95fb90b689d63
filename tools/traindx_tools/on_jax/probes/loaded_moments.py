"""Always on: are the second moments that a program begins with those of the gradients that follow (J712)?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.values import is_inexact
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j712_moments_of_others
from traindx_tools.on_jax.tracing import argument_names
from traindx_tools.on_variables.moments import by_factors

LAST = 256
"""The last call that is looked at, of calls 1, 2, 4, 8, ..."""
MOST_FUNCTIONS, MOST_ARRAYS, MOST_ELEMENTS = 8, 64, 1024
LARGEST = 4_000_000
"""Elements of an array that is read: a larger one is passed over, since reading it waits for the whole of it."""
FEWEST = 48
"""Elements of an array that tell."""
POSITIVE = 0.9
"""Of the elements of a mean of squares: zero where a gradient was never anything else."""
FORGOTTEN = (0.5, 0.995)
"""The share of the first content that is left, when it can be measured: enough of it, and enough has gone."""
RESOLUTION = 1e-6
"""Of the content: what the rounding of so many updates in single precision may leave (2^-24, some hundred times)."""


@dataclass
class _Function:
    """What one function was given first. `first`: by argument leaf, a sample."""

    names: list[str]
    shapes: dict[int, tuple[int, ...]]
    first: dict[int, NDArray[np.float64]]
    later: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    calls: int = 1


class LoadedMomentsProbe(JaxProbe):
    """Reads samples of a carried state in a few of the first calls."""

    name = "jax-loaded-moments"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, tuple[Any, _Function]] = {}

    def before_call(self, call: Call) -> None:
        """Looks before anything is given away; of a call that is not carried nothing is kept."""
        number, step = call.watched.number, call.step
        if step > LAST or step & (step - 1):
            return
        if step == 1:
            if len(self._functions) < MOST_FUNCTIONS and (begun := _begun(call)) is not None:
                self._functions[number] = call.watched, begun
            return
        if number not in self._functions:
            return
        watched, known = self._functions[number]
        if step == 4:
            fed = set(watched.feeding.fed.values()) if watched.feeding is not None else set()
            known.first = {i: v for i, v in known.first.items() if i in fed}
        if not known.first:
            del self._functions[number]
            return
        leaves = _leaves(call)
        now = {i: sample for i in known.first if i < len(leaves) and (sample := _sample(leaves[i])) is not None}
        left = _left(known.first, now)
        if left is None or left < FORGOTTEN[0]:  # what was looked at before is the better measure
            return
        known.later, known.calls = now, step

    def finish(self) -> Iterable[Finding]:
        """Judges each function that takes gradients."""
        for watched, known in self._functions.values():
            left = _left(known.first, known.later)
            trains = watched.differentiates or watched.kind != "jit"
            if left is None or not trains or not FORGOTTEN[0] <= left <= FORGOTTEN[1]:
                continue
            factors = {known.names[i]: f for i in known.first if i in known.later
                       and (f := _factor(known.first[i], known.later[i], left)) is not None}
            yield from j712_moments_of_others.check(by_factors(factors, known.calls - 1), watched.name,
                                                    known.calls, watched.place)
        self._functions.clear()


def _begun(call: Call) -> _Function | None:
    """The arrays that can be second moments: nowhere negative, matrices, with another array of the same shape."""
    leaves = _leaves(call)
    shapes = {i: tuple(x.shape) for i, x in enumerate(leaves) if _readable(x) and x.ndim > 1 and x.size >= FEWEST}
    first: dict[int, NDArray[np.float64]] = {}
    signed: set[tuple[int, ...]] = set()
    for i, shape in list(shapes.items())[:4 * MOST_ARRAYS]:
        sample = _sample(leaves[i])
        if sample is None:
            continue
        if (sample < 0).any():
            signed.add(shape)
        elif (sample > 0).mean() >= POSITIVE and len(first) < MOST_ARRAYS:
            first[i] = sample
    first = {i: v for i, v in first.items() if shapes[i] in signed}
    return _Function(argument_names(call.watched, call.args, call.kwargs), shapes, first) if first else None


def _leaves(call: Call) -> Sequence[Any]:
    import jax

    leaves: list[Any] = jax.tree_util.tree_leaves((call.args, call.kwargs))
    return leaves


def _readable(leaf: Any) -> bool:
    return (is_inexact(leaf) and hasattr(leaf, "shape") and not internals.is_tracer(leaf)
            and getattr(leaf, "is_fully_addressable", True) and not getattr(leaf, "is_deleted", bool)()
            and leaf.size <= LARGEST)


def _sample(leaf: Any) -> NDArray[np.float64] | None:
    if not _readable(leaf):
        return None
    flat = np.asarray(leaf).reshape(-1)
    taken: NDArray[np.float64] = flat[:: max(1, flat.size // MOST_ELEMENTS)].astype(np.float64)
    return taken if np.isfinite(taken).all() else None


def _left(first: dict[int, NDArray[np.float64]], later: dict[int, NDArray[np.float64]]) -> float | None:
    """The share of what was there at first that is there still: the least ratio, where nothing was added."""
    ratios = [float((later[i][own] / v[own]).min()) for i, v in first.items()
              if i in later and later[i].shape == v.shape and (own := v > 0).any()]
    return min(ratios, default=None)


def _factor(first: NDArray[np.float64], later: NDArray[np.float64], left: float) -> float | None:
    """What was there over the mean of what was added since, as if added all the time; at most what can be told."""
    if first.shape != later.shape or not first.mean() > 0:
        return None
    added = max(float((later - left * first).mean()), RESOLUTION * float(first.mean()))
    return float(first.mean()) * (1 - left) / added
