"""Always on: do weights that are looked up by class fit how often each class comes (J808)?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.lookups import Ids, Table, lookups
from traindx_tools.on_jax.places import Place
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j808_class_weights
from traindx_tools.on_jax.tracing import dynamic_leaves
from traindx_tools.rows.class_weights import misfit

MOST_EQUATIONS, MOST_FUNCTIONS, MOST_LOOKUPS, MOST_CALLS = 40_000, 16, 8, 2000
MOST_CLASSES, MOST_SIZE = 4096, 2**16


@dataclass(eq=False)
class _Weights:
    """One look-up: weights as they were first, and how often each class was looked up."""

    ids: Ids
    table: Table
    place: Place | None
    counts: NDArray[np.float64]
    values: NDArray[np.float64] | None = None
    trained: bool = False
    """They are others by now: parameters."""


@dataclass
class _Function:
    name: str
    weights: list[_Weights] = field(default_factory=list)


class ClassWeightsProbe(JaxProbe):
    """Counts the ids with which a row of numbers is looked up in a compiled function."""

    name = "class-weights"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, _Function] = {}

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """What is looked up in one row of numbers, by an input."""
        number = call.watched.number
        if number in self._functions or len(self._functions) >= MOST_FUNCTIONS \
                or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        known = _Function(call.watched.name)
        for one in lookups(jaxpr):
            if isinstance(one.ids, Ids) and one.ids.cut is None and one.table is not None \
                    and 2 < one.rows <= MOST_CLASSES and len(known.weights) < MOST_LOOKUPS:
                known.weights.append(_Weights(one.ids, one.table, one.place, np.zeros(one.rows)))
        self._functions[number] = known

    def before_call(self, call: Call) -> None:
        """Counts."""
        known = self._functions.get(call.watched.number)
        if known is None or not known.weights or call.step > MOST_CALLS:
            return
        leaves = dynamic_leaves(call.watched, call.args, call.kwargs)
        for one in known.weights:
            self._look(one, leaves)

    def _look(self, one: _Weights, leaves: list[Any]) -> None:
        ids = leaves[one.ids.number] if one.ids.number < len(leaves) else None
        table = one.table.values if one.table.number < 0 else (
            leaves[one.table.number] if one.table.number < len(leaves) else None)
        if ids is None or table is None or one.trained or not 0 < getattr(ids, "size", 0) <= MOST_SIZE:
            return
        values = np.asarray(table, np.float64)
        if one.values is None:
            one.values = values
        one.trained = values.shape != one.counts.shape or not np.array_equal(values, one.values)
        flat = np.asarray(ids).reshape(-1)
        inside = flat[(flat >= 0) & (flat < len(one.counts))]
        one.counts += np.bincount(inside, minlength=len(one.counts))

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        told: set[Any] = set()
        for known in self._functions.values():
            for one in known.weights:
                found = None if one.trained or one.values is None else misfit(one.values, one.counts)
                if found is not None and one.place not in told:
                    told.add(one.place)
                    file, line = (one.place.file, one.place.line) if one.place is not None else (None, None)
                    yield from j808_class_weights.check(known.name, found, int(one.counts.sum()), file, line)
