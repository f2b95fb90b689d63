"""Always on: do the rows of a compiled training step's inputs belong together (J404)?

Of one call of each function that trains the arrays are kept, and at the end what was compiled for it is evaluated on
them with some inputs' rows in another order: no function of the program is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.measures.row_orders import FEWEST_ROWS, MOST_ROWS, Apart, apart
from traindx_tools.on_jax.nonfinite.values import measurable
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j404_rows_come_apart
from traindx_tools.on_jax.rules.j404_rows_come_apart import Step
from traindx_tools.on_jax.tracing import argument_names, dynamic_leaves, dynamic_numbers
from traindx_tools.on_jax.watched import Watched

LOOK = 3
"""The call of which the arrays are kept: the first ones are often tries."""
MOST_EQUATIONS, MOST_FUNCTIONS, MOST_BYTES = 4_000, 8, 2**26
FEWEST_INPUTS, MOST_INPUTS = 3, 6
"""Inputs with a row for each sample: with two, one in another order is what everything depends on."""
_RANDOM = ("random_bits", "random_wrap", "threefry")


@dataclass(frozen=True, eq=False)
class _Kept:
    watched: Watched
    jaxpr: Any
    values: tuple[Any, ...]
    rows: tuple[int, ...]
    names: tuple[str, ...]


class RowsTogetherProbe(JaxProbe):
    """Keeps one call of each function that trains and is given rows of several inputs."""

    name = "rows-together"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._jaxprs: dict[int, Any] = {}
        self._before: dict[int, tuple[list[Any], list[str]]] = {}
        self._kept: dict[int, _Kept] = {}

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """What a function that trains was compiled to; one that draws or calls back into Python is left alone."""
        watched = call.watched
        if watched.kind == "jit" and watched.differentiates and not jaxpr.effects and len(self._jaxprs) < \
                MOST_FUNCTIONS and internals.size(jaxpr) <= MOST_EQUATIONS:
            self._jaxprs.setdefault(watched.number, jaxpr)

    def before_call(self, call: Call) -> None:
        """Copies of its arrays, before any may be given away."""
        number = call.watched.number
        if call.step != LOOK or number not in self._jaxprs or number in self._kept:
            return
        leaves = dynamic_leaves(call.watched, call.args, call.kwargs)
        every = argument_names(call.watched, call.args, call.kwargs)
        names = [every[i] for i in dynamic_numbers(call.watched, call.args, call.kwargs)]
        shapes = [tuple(np.shape(leaf)) for leaf in leaves]
        fits = shapes == [tuple(v.aval.shape) for v in self._jaxprs[number].jaxpr.invars]
        if fits and sum(getattr(leaf, "nbytes", 8) for leaf in leaves) <= MOST_BYTES:
            self._before[number] = [np.array(x) if measurable(x) else x for x in leaves], names

    def after_call(self, call: Call) -> None:
        """Which of them have a row for each sample: what comes back as an output is a state."""
        kept = self._before.pop(call.watched.number, None) if call.step == LOOK else None
        if kept is None:
            return
        import jax

        values, names = kept
        back = {_type(leaf) for leaf in jax.tree_util.tree_leaves(call.output)}
        long = [i for i, v in enumerate(values) if np.ndim(v) and measurable(v) and _type(v) not in back]
        counts = Counter(np.shape(values[i])[0] for i in long)
        count, inputs = max(counts.items(), key=lambda c: c[1], default=(0, 0))
        if FEWEST_ROWS <= count <= MOST_ROWS and FEWEST_INPUTS <= inputs <= MOST_INPUTS:
            rows = tuple(i for i in long if np.shape(values[i])[0] == count)
            self._kept[call.watched.number] = _Kept(
                call.watched, self._jaxprs[call.watched.number], tuple(values), rows, tuple(names))

    def finish(self) -> Iterable[Finding]:
        """Evaluates and judges."""
        for kept in self._kept.values():
            found = self._apart(kept)
            if found is not None:
                yield from j404_rows_come_apart.check(Step(
                    kept.watched.name, tuple(kept.names[i] for i in found.together),
                    tuple(kept.names[i] for i in found.alone), found.moved, kept.watched.place))

    def _apart(self, kept: _Kept) -> Apart | None:
        text = str(kept.jaxpr)
        if any(word in text for word in _RANDOM):
            return None  # noise of its own for each place: no two orders give the same
        import jax

        step = jax.jit(internals.as_function(kept.jaxpr))
        return apart(lambda values: [np.asarray(o) for o in step(*values)], kept.values, kept.rows)


def _type(leaf: Any) -> tuple[tuple[int, ...], str]:
    return tuple(np.shape(leaf)), str(getattr(leaf, "dtype", ""))
