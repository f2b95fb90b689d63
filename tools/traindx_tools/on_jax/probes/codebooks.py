"""Always on: codebooks inside compiled steps, their use and their scale (J805).

Only steps that differentiate, take an argmin or argmax and look rows up with it are looked into: the part of the step
up to these rows is compiled once more, and computed in some dozens of calls of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.codes.nearest import lookups_in, may_look_up
from traindx_tools.on_jax.paths.marked import speaks_outside
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j805_codes_of_other_scale
from traindx_tools.on_jax.rules.j805_codes_of_other_scale import PER_CODE, Codes
from traindx_tools.on_jax.tracing import dynamic_leaves, lowered

MOST_FUNCTIONS, MOST_EQUATIONS = 8, 20_000
BEGINNINGS = (2, 40, 120, 360, 1_000, 3_000, 10_000, 30_000)
"""Calls at which a window of looks begins; it ends with enough choices."""
MOST_IN_WINDOW = 24


@dataclass
class _Book:
    """One table. `counts`: choices of the current window; `told`: those of the last whole one."""

    name: str
    size: int
    counts: Any
    ratio: float = math.nan
    ratios: list[float] = field(default_factory=list)
    told: Any = None
    call: int = 0


@dataclass
class _Step:
    """One compiled step that has look-ups."""

    types: list[tuple[tuple[int, ...], str]]
    measure: Any
    books: list[_Book]
    left: int = 0


class Codebooks(JaxProbe):
    """Computes the choices of codes now and then."""

    name = "codebooks"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._steps: dict[int, _Step | None] = {}
        self._places: dict[int, tuple[str, tuple[str, int] | None]] = {}

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Whether it looks codes up."""
        number = call.watched.number
        if call.watched.kind != "jit" or number in self._steps or len(self._steps) >= MOST_FUNCTIONS:
            return
        able = (call.watched.differentiates and internals.size(jaxpr) <= MOST_EQUATIONS and may_look_up(jaxpr)
                and not speaks_outside(jaxpr))
        self._steps[number] = _step(call, jaxpr) if able else None
        self._places[number] = call.watched.name, call.watched.place

    def before_call(self, call: Call) -> None:
        """Measures where it is due, before the arguments are given away."""
        step = self._steps.get(call.watched.number)
        if step is None:
            return
        if call.step in BEGINNINGS:
            step.left = MOST_IN_WINDOW
            for book in step.books:
                book.counts, book.ratio = np.zeros(book.size), math.nan
        if step.left:
            step.left -= 1
            leaves = dynamic_leaves(call.watched, call.args, call.kwargs)
            if [_type(x) for x in leaves] == step.types:
                self._look(step, leaves, call)

    def _look(self, step: _Step, leaves: Sequence[Any], call: Call) -> None:
        found = [(np.asarray(counts), float(ratio)) for counts, ratio in step.measure(*leaves)]
        for book, (counts, ratio) in zip(step.books, found, strict=True):
            book.counts = book.counts + counts
            book.ratio = ratio if math.isnan(book.ratio) else book.ratio
            book.call = call.step
        if all(book.counts.sum() >= PER_CODE * book.size for book in step.books):
            step.left = 0
            for book in step.books:
                book.told = book.counts
                book.ratios.append(book.ratio)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for number, step in self._steps.items():
            for book in step.books if step is not None else ():
                if len(book.ratios) < 2 or not all(0 < r < math.inf for r in book.ratios):
                    continue
                function, place = self._places[number]
                file, line = place or (None, None)
                counts = book.told
                yield from j805_codes_of_other_scale.check(Codes(
                    function, book.name, book.size, (book.ratios[0], book.ratios[-1]), int((counts > 0).sum()),
                    float(counts.max() / counts.sum()), int(counts.sum()), book.call, file, line))


def _type(leaf: Any) -> tuple[tuple[int, ...], str]:
    return tuple(getattr(leaf, "shape", ())), str(getattr(leaf, "dtype", type(leaf).__name__))


def _step(call: Call, jaxpr: Any) -> _Step | None:
    """None where no look-up is in it, or its arguments cannot be told."""
    import jax

    traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
    if not traced.positions and traced.inputs:
        return None
    kept: list[tuple[int, int]] = []

    def measure(*leaves: Any) -> list[tuple[Any, Any]]:
        found = {one.table: one for one in lookups_in(jaxpr, leaves)}
        tables = {i: leaves[i].T if one.flipped else leaves[i] for i, one in found.items()}
        kept[:] = [(i, int(table.shape[0])) for i, table in tables.items()]
        return [_measured(tables[i], one.vectors, one.indices) for i, one in found.items()]

    types = [v.aval for v in jaxpr.jaxpr.invars]
    try:
        jax.eval_shape(measure, *types)
    except Exception:  # noqa: BLE001 - what cannot be evaluated apart is not looked into
        return None
    books = [_Book(traced.inputs[i], size, np.zeros(size)) for i, size in kept]
    return _Step([_type(a) for a in types], jax.jit(measure), books) if books else None


def _measured(table: Any, vectors: Any, indices: Any) -> tuple[Any, Any]:
    """Choices by code, and the spread of the codes over that of the vectors (root mean squares about their means)."""
    import jax.numpy as jnp

    flat = vectors.reshape(-1, vectors.shape[-1]).astype(jnp.float32)
    codes = table.astype(jnp.float32)
    ratio = jnp.sqrt(codes.var(0).sum()) / jnp.maximum(jnp.sqrt(flat.var(0).sum()), 1e-30)
    counts = jnp.zeros(table.shape[0], jnp.float32).at[indices.reshape(-1)].add(1.0)
    return counts, ratio
