"""On request: the rows of every batch that a step is given, with their targets, in a file.

For the experiment that plants values in the data files and looks where they arrive (`experiments/planting`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.live.batch_rows import (
    MOST_ROWS,
    MOST_TARGETS,
    SECONDS,
    TRAINED,
    BatchRows,
    kept_targets,
    path_for,
    write,
)
from traindx_tools.on_jax.measures.roles import FEWEST_ROWS, arguments, on_host, signature, state_in
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_variables.column_names import column_names
from traindx_tools.rows.host_values import row_matrix

LOOKS = 8
Leaf = tuple[str, NDArray[Any]]


class BatchRowsProbe(JaxProbe):
    """Keeps the rows of each call of a function that is differentiated, until there are enough."""

    name = "batch-rows"
    on_request = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._given: tuple[int, list[Leaf]] | None = None
        self._kept: list[tuple[int, NDArray[Any], NDArray[Any]]] = []
        self._rows = self._looks = self._per_row = 0
        self._names: tuple[str, ...] = ()
        self._began = 0.0
        self._done = False
        self._most = min(MOST_ROWS, int(scene.options.get("batch_rows", MOST_ROWS)))

    def before_call(self, call: Call) -> None:
        """Keeps the arrays on the host before the call may donate them."""
        self._given = None
        if not self._done:
            self._began = self._began or time.monotonic()
            self._given = call.number, list(_leaves(call))

    def after_call(self, call: Call) -> None:
        """Takes the rows of a call that trains."""
        if self._done or self._given is None or self._given[0] != call.number:
            return
        if call.watched.differentiates or call.watched.kind != "jit":
            given = {name: signature(value) for name, value in arguments(call.args, call.kwargs)}
            states = state_in(given, call.output)
            self._take(call.number, [v for name, v in self._given[1] if name not in states])
        if self._rows >= self._most or time.monotonic() - self._began > SECONDS:
            self._write(whole=True)

    def _take(self, number: int, arrays: list[NDArray[Any]]) -> None:
        main = max((a for a in arrays if a.ndim >= 2), key=lambda a: a[0].size, default=None)
        if main is None:
            return
        others = (a.reshape(len(a), -1) for a in reversed(arrays) if a is not main and len(a) == len(main)
                  and a[0].size <= MOST_TARGETS)
        found = (kept_targets(a.astype(np.float32), len(main), main[0].size) for a in others)
        targets = next((t for t in found if t is not None), None)
        if targets is None:
            return
        self._kept.append((number, row_matrix(main)[0].astype(np.float32), targets))
        self._rows += len(main)
        self._per_row = main[0].size
        if not self._names and self._looks < LOOKS:
            self._looks += 1
            self._names = column_names(self._per_row, len(main))

    def finish(self) -> Iterable[Finding]:
        """The program ends before there were enough: what came is written."""
        if not self._done:
            self._write(whole=False)
        return ()

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The same with an error."""
        return self.finish()

    def _write(self, *, whole: bool) -> None:
        self._done = True
        width = self._kept[-1][1].shape[1] if self._kept else 0
        kept = [k for k in self._kept if k[1].shape[1] == width]
        if not kept:
            return
        step = np.concatenate([np.full(len(m), n) for n, m, _ in kept])
        place = np.concatenate([np.arange(len(m)) for _, m, _ in kept])
        rows = BatchRows(step, place, np.full(len(step), TRAINED), np.concatenate([m for _, m, _ in kept]),
                         np.concatenate([t for _, _, t in kept]), self._per_row, self._names, whole)
        folder: Path = self.scene.recorder.batch_path.parent  # type: ignore[attr-defined]
        write(path_for(folder, self.scene.recorder.rank), rows)
        self._kept.clear()


def _leaves(call: Call) -> Iterable[Leaf]:
    """Arrays of several rows by the argument that holds them, copied."""
    import jax

    for name, value in arguments(call.args, call.kwargs):
        for leaf in jax.tree_util.tree_leaves(value):
            if hasattr(leaf, "shape") and leaf.shape and leaf.shape[0] >= FEWEST_ROWS and leaf.size:
                values = on_host(leaf)
                if values is not None:
                    yield name, np.array(values)
