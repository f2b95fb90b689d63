"""Always on: what rows of ids are filled up with, against what compiled steps compare them with (J806)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.compared import compared_with
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j806_padding_ids_differ
from traindx_tools.on_jax.rules.j806_padding_ids_differ import Padded, Rows
from traindx_tools.on_jax.tracing import dynamic_leaves, lowered
from traindx_tools.rows.filling import look

FIRST, EVERY, MOST = 12, 50, 2000
"""Calls of a function that are looked at: the first ones, then every so many, up to one."""
MOST_ROWS, SHORTEST, LONGEST, MOST_EQUATIONS = 64, 4, 512, 40_000
AGREE = 0.98
_Ids = NDArray[np.int64]


class PaddingProbe(JaxProbe):
    """Looks at the ids that steps with gradients are given, where these compare them with a number."""

    name = "padding"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._functions: dict[int, Padded] = {}

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """Which numbers its arguments are compared with."""
        watched = call.watched
        if watched.number in self._functions or internals.size(jaxpr) > MOST_EQUATIONS:
            return
        trains = watched.differentiates or any("transpose" in internals.stack(e) for e in jaxpr.jaxpr.eqns)
        shapes = [tuple(getattr(v.aval, "shape", ())) for v in jaxpr.jaxpr.invars]
        kinds = [getattr(getattr(v.aval, "dtype", None), "kind", "") for v in jaxpr.jaxpr.invars]
        ids = [i for i, (s, k) in enumerate(zip(shapes, kinds, strict=True))
               if k in "iu" and len(s) == 2 and SHORTEST <= s[1] <= LONGEST]
        compared = compared_with(jaxpr) if trains and ids else {}
        if not any(i in compared for i in ids):
            return
        names = lowered(watched, jaxpr, call.args, call.kwargs, call.output).inputs
        self._functions[watched.number] = Padded(watched.name, {
            i: Rows(names[i], frozenset(compared.get(i, ()))) for i in ids}, place=watched.place)

    def before_call(self, call: Call) -> None:
        """Looks at the rows."""
        known = self._functions.get(call.watched.number)
        if known is None or known.told or call.step > MOST or (call.step > FIRST and call.step % EVERY):
            return
        leaves = dynamic_leaves(call.watched, call.args, call.kwargs)
        for i, rows in known.arguments.items():
            if i < len(leaves) and getattr(leaves[i], "ndim", 0) == 2:
                self._look(known, rows, np.asarray(leaves[i][:MOST_ROWS]).astype(np.int64), leaves)

    def _look(self, known: Padded, rows: Rows, ids: _Ids, leaves: list[Any]) -> None:
        look(rows.filling, ids.astype(np.float64))
        behind = np.flip(np.logical_and.accumulate(np.flip(ids == ids[:, -1:], 1), axis=1), 1)
        lengths = (~behind).sum(1)
        for row, n in zip(ids, lengths, strict=True):
            if 0 < n < len(row) - 1:
                rows.before[int(row[n - 1])] += 1
        if (len(ids[0]) - lengths >= 2).any():
            known.told = known.told or any(_says(leaf, ids, behind, lengths) for leaf in leaves)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from j806_padding_ids_differ.check(list(self._functions.values()))


def _says(leaf: Any, ids: _Ids, behind: NDArray[np.bool_], lengths: NDArray[np.int64]) -> bool:
    """Whether an argument is a mask of these rows, of any kind, or their lengths."""
    shape = tuple(getattr(leaf, "shape", ()))
    if shape[:1] != (len(ids),) and not (len(ids) == MOST_ROWS and shape and shape[0] > MOST_ROWS):
        return False
    if len(shape) == 1:
        told = np.asarray(leaf[:len(ids)])
        near = np.abs(told.astype(np.float64) - lengths) <= 1 if told.dtype.kind in "iuf" else np.zeros(1, bool)
        return bool(near.mean() >= AGREE)
    if len(shape) != 2 or abs(shape[1] - ids.shape[1]) > 1:
        return False
    mask = np.asarray(leaf[:len(ids)])
    return bool(((mask == 0) | (mask == 1)).all()) and len(np.unique(mask)) == 2
