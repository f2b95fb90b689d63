"""On request: the rows of every batch that is trained or evaluated on, with their targets, in a file.

For the experiment that plants values in the data files and looks where they arrive (`experiments/planting`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.live.batch_rows import EVALUATED as ROLE_EVALUATED
from traindx_tools.live.batch_rows import (
    MOST_ROWS,
    MOST_TARGETS,
    PATIENCE,
    SECONDS,
    BatchRows,
    kept_targets,
    path_for,
    write,
)
from traindx_tools.live.batch_rows import TRAINED as ROLE_TRAINED
from traindx_tools.on_torch.lagged import capturing
from traindx_tools.on_torch.measures.batch import arguments
from traindx_tools.on_torch.measures.calls import EVALUATED, TRAINED, Calls, ModelCall, outputs_of
from traindx_tools.on_torch.measures.row_targets import given_target, row_targets
from traindx_tools.on_torch.measures.row_values import inputs_of, row_matrix
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_variables.column_names import column_names

LOOKS = 8
"""Trained calls at which the names of the inputs' columns are looked for."""


class _Call(ModelCall):
    """A call with its rows, its outputs and the target that a loss was given with them."""

    matrix: Any = None
    targets: Any = None


class BatchRowsProbe(TorchProbe):
    """Keeps the rows of each call of the model that is trained, until there are enough."""

    name = "batch-rows"
    on_request = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._calls = Calls()
        self._kept: list[_Kept] = []
        self._current: _Call | None = None
        self._count = self._rows = self._trained = self._looks = 0
        self._per_row: dict[int, int] = {}
        self._names: tuple[str, ...] = ()
        self._began = 0.0
        self._targets = False
        """Whether any row had a target that can be one."""
        self._most = min(MOST_ROWS, int(scene.options.get("batch_rows", MOST_ROWS)))
        """Trained rows that are enough."""

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The rows that a model is given."""
        self._current = None
        if self.done or not any(m is model for m in self.scene.models):
            return
        grad = torch.is_grad_enabled()
        with torch.no_grad():
            inputs = list(inputs_of(arguments(model, args, kwargs)).values())
            if not inputs or capturing(inputs[0].device):
                return
            self._began = self._began or time.monotonic()
            self._count += 1
            call = _Call(id(model), self._count, self.scene.step + 1, len(inputs[0]), grad, model.training, None)
            call.matrix = row_matrix(inputs)[0].cpu()
            self._per_row[id(model)] = sum(t[0].numel() for t in inputs if len(t))
            self._calls.begin(call)
            self._current = call

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """What the output is, so that it is known again in the graph of a loss."""
        if self._current is not None and self._current.grad:
            self._current.made = tuple(t.grad_fn._sequence_nr() for t in outputs_of(output) if t.grad_fn is not None)
            self._current.outputs = outputs_of(output)

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """The target of an evaluated batch, where a loss of torch is given it."""
        call = self._current
        if call is not None and not call.grad and call.targets is None:
            call.targets = self._of_row(call, given_target(args, kwargs, call.rows))

    def before_backward(self, loss: torch.Tensor) -> None:
        """The targets of the rows that are trained on."""
        if self.done:
            return
        with torch.no_grad():
            trained = [c for c in self._calls.trained_by(loss) if isinstance(c, _Call)]
            if len(trained) == 1:
                trained[0].targets = self._of_row(trained[0], row_targets(loss, trained[0].rows, trained[0].outputs))
                self._trained += trained[0].rows
                self._targets |= trained[0].targets is not None
                if not self._names and self._looks < LOOKS:
                    self._looks += 1
                    self._names = column_names(self._per_row.get(trained[0].model, 0), trained[0].rows)
            self._put()
        since = time.monotonic() - self._began
        few = self._trained < self._most and self._rows < MOST_ROWS and since < SECONDS
        if not few or (since > PATIENCE and not self._targets):
            self._write(whole=True)

    def _of_row(self, call: _Call, targets: torch.Tensor | None) -> Any:
        found = targets.cpu().numpy() if targets is not None else None
        return kept_targets(found, call.rows, self._per_row.get(call.model, 0))

    def _put(self) -> None:
        for call in self._calls.done():
            call.outputs = ()
            if isinstance(call, _Call) and call.matrix is not None and call.role in (TRAINED, EVALUATED):
                self._rows += call.rows
                role = ROLE_TRAINED if call.role == TRAINED else ROLE_EVALUATED
                self._kept.append(_Kept(call.model, call.step, role, call.matrix, call.targets))

    def finish(self) -> Iterable[Finding]:
        """The program ends before there were enough: what came is written."""
        if not self.done:
            self._calls.settle(ended=True)
            self._put()
            self._write(whole=False)
        return ()

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The same with an error."""
        return self.finish()

    def _write(self, *, whole: bool) -> None:
        self.done = True
        trained = Counter[tuple[int, int]]()
        for k in self._kept:  # of several models the one that is trained most; before it, one that is given targets
            worth = k.rows * (1 + MOST_ROWS * (k.targets is not None))
            trained[k.model, k.matrix.shape[1]] += worth if k.role == ROLE_TRAINED else 0
        if not trained:
            return
        model, width = trained.most_common(1)[0][0]
        kept = [k for k in self._kept if (k.model, k.matrix.shape[1]) == (model, width)]
        step = np.concatenate([np.full(k.rows, k.step) for k in kept])
        role = np.concatenate([np.full(k.rows, k.role) for k in kept])
        place = np.concatenate([np.arange(k.rows) for k in kept])
        targets = np.concatenate([k.targets if k.targets is not None else _none(k.rows) for k in kept])
        inputs = np.concatenate([k.matrix.numpy() for k in kept])
        rows = BatchRows(step, place, role, inputs.astype(np.float32), targets.astype(np.float32),
                         self._per_row.get(model, 0), self._names, whole)
        folder: Path = self.scene.recorder.batch_path.parent  # type: ignore[attr-defined]
        write(path_for(folder, self.scene.recorder.rank), rows)
        self._kept.clear()


def _none(rows: int) -> Any:
    return np.full((rows, MOST_TARGETS), np.nan, np.float32)


@dataclass(frozen=True, eq=False)
class _Kept:
    """The rows of one call."""

    model: int
    step: int
    role: int
    matrix: Any
    targets: Any

    @property
    def rows(self) -> int:
        return len(self.matrix)
