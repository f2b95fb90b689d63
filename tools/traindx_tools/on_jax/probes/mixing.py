"""Always on: does what a compiled function answers for one row depend on the other rows of its batch (J401)?

Asked of functions that do not train and are given the parameters and rows like those that are trained on. Of one call
the arrays are kept, and at the end what was compiled for it is evaluated on them with other rows: no function of the
program is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.measures.roles import Signature, arguments, largest, on_host, signature, state_in
from traindx_tools.on_jax.nonfinite.values import measurable
from traindx_tools.on_jax.paths.mixing import rows_that_mix
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.stale.captured import read_inputs
from traindx_tools.on_jax.tracing import dynamic_leaves
from traindx_tools.rows.host_values import hashes_of, row_matrix
from traindx_tools.rows.neighbours import Neighbours
from traindx_tools.rows.spent import Spent

MOST_EQUATIONS, MOST_FUNCTIONS, MOST_CALLS = 4_000, 16, 2_000
FEWEST_ROWS, MOST_ROWS, MOST_BYTES = 4, 1_024, 2**26
SECONDS = 12.0
"""For all functions together, at the end."""
HELD = 0.5
"""Of the parameters' shapes, among what a function is given: it is the trained one."""
AT_ONCE, SHARE = 1.0, 0.01


@dataclass(eq=False)
class _Trained:
    """What one kind of function trains: the types of its parameters, the type of its rows, and their company."""

    state: frozenset[tuple[tuple[int, ...], str]]
    row: tuple[tuple[int, ...], str]
    neighbours: Neighbours = field(default_factory=Neighbours)


@dataclass(frozen=True, eq=False)
class _Kept:
    """One call of a function that does not train. `rows`: the inputs with a row for each of `count`."""

    name: str
    jaxpr: Any
    values: tuple[Any, ...]
    rows: frozenset[int]
    count: int
    of: _Trained


class MixingProbe(JaxProbe):
    """Keeps one call of each function that answers with a row for each row of its batch."""

    name = "mixing"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._spent = Spent(AT_ONCE, SHARE)
        self._trained: dict[Signature, _Trained] = {}
        self._jaxprs: dict[int, Any] = {}
        self._kept: dict[int, _Kept] = {}
        self._batch: tuple[str, Any] | None = None

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """What a function that does not train was compiled to; one that calls back into Python is left alone."""
        if call.watched.kind == "jit" and not call.watched.differentiates and not jaxpr.effects \
                and internals.size(jaxpr) <= MOST_EQUATIONS and call.watched.number not in self._kept \
                and not any("transpose" in internals.stack(e) for e in jaxpr.jaxpr.eqns):
            self._jaxprs[call.watched.number] = jaxpr

    def before_call(self, call: Call) -> None:
        """Rows that are trained on, before the call may donate them."""
        self._batch = None
        trains = call.watched.differentiates or call.watched.kind != "jit"
        if not trains or not self._trained or call.step > MOST_CALLS or not self._spent.open:
            return
        with self._spent.counted():
            found = [(name, leaf[1]) for name, value in arguments(call.args, call.kwargs)
                     if (leaf := largest(value, name)) is not None]
            self._batch = self._main(call, found)

    def _main(self, call: Call, found: list[tuple[str, Any]]) -> tuple[str, Any] | None:
        known = {name for name, value in arguments(call.args, call.kwargs) if signature(value) in self._trained}
        rest = [(name, leaf) for name, leaf in found if name not in known]
        if not known or not rest:
            return None
        name, leaf = max(rest, key=lambda p: p[1].size)
        values = on_host(leaf)
        return None if values is None else (name, np.array(values))

    def after_call(self, call: Call) -> None:
        """Learns what trains, and keeps one call of what does not."""
        watched = call.watched
        if watched.differentiates or watched.kind != "jit":
            if call.step <= MOST_CALLS and self._spent.open:
                with self._spent.counted():
                    self._train(call)
        elif watched.number in self._jaxprs and self._trained and watched.number not in self._kept \
                and len(self._kept) < MOST_FUNCTIONS:
            with self._spent.counted():
                kept = _keep(call, self._jaxprs[watched.number], self._trained)
                if kept is not None:
                    self._kept[watched.number] = kept

    def _train(self, call: Call) -> None:
        if self._batch is None:
            given = {name: signature(value) for name, value in arguments(call.args, call.kwargs)}
            self._found_training(call, state_in(given, call.output))
            return
        values = self._batch[1]
        for one in self._trained.values():
            if one.row == (values.shape[1:], str(values.dtype)):
                one.neighbours.take(hashes_of(row_matrix(values)[0]))
                break

    def _found_training(self, call: Call, states: Mapping[str, Signature]) -> None:
        rest = [leaf[1] for name, value in arguments(call.args, call.kwargs)
                if name not in states and (leaf := largest(value, name)) is not None]
        if not states or not rest:
            return
        batch = max(rest, key=lambda leaf: leaf.size)
        row = tuple(batch.shape[1:]), str(batch.dtype)
        for state in states.values():
            types = frozenset(t for t in state if len(t[0]) >= 2)
            if types and len(self._trained) < MOST_FUNCTIONS:
                self._trained.setdefault(state, _Trained(types, row))

    def finish(self) -> Iterable[Finding]:
        """Asks, and judges."""
        found: list[Finding] = []
        left = SECONDS
        for kept in self._kept.values():
            if kept.of.neighbours.exchanged and left > 0:
                spent = Spent()
                with spent.counted():
                    found += rows_that_mix(kept.name, kept.jaxpr, kept.values, kept.rows, kept.count, left)
                left -= spent.seconds
        return found


def _keep(call: Call, jaxpr: Any, trained: Mapping[Signature, _Trained]) -> _Kept | None:
    """Copies of its arrays; None where it is not given parameters and rows like those of a training."""
    leaves = dynamic_leaves(call.watched, call.args, call.kwargs)
    types = [(tuple(np.shape(leaf)), str(getattr(leaf, "dtype", ""))) for leaf in leaves]
    if [t[0] for t in types] != [tuple(v.aval.shape) for v in jaxpr.jaxpr.invars]:
        return None
    reads = read_inputs(jaxpr)
    used = {t for i, t in enumerate(types) if reads >> i & 1}
    for one in trained.values():
        if len(one.state & used) < HELD * len(one.state):
            continue
        counts = {shape[0] for shape, dtype in types if len(shape) > 1 and (shape[1:], dtype) == one.row
                  and (shape, dtype) not in one.state}
        count = counts.pop() if len(counts) == 1 else 0
        rows = frozenset(i for i, t in enumerate(types) if t[0][:1] == (count,) and t not in one.state)
        if FEWEST_ROWS <= count <= MOST_ROWS and any(np.shape(o)[:1] == (count,) for o in _leaves(call.output)) \
                and sum(getattr(leaf, "nbytes", 8) for leaf in leaves) <= MOST_BYTES:
            return _Kept(call.watched.name, jaxpr, tuple(map(_copied, leaves)), rows, count, one)
    return None


def _copied(leaf: Any) -> Any:
    """On the host: what the program holds may be written to or given away. Keys have no values there."""
    return np.array(leaf) if measurable(leaf) else leaf


def _leaves(output: Any) -> list[Any]:
    import jax

    return list(jax.tree_util.tree_leaves(output))
