"""On request: the rows of every batch that is trained or evaluated on, with their targets, in a file.

For the experiment that plants values in the data files and looks where they arrive (`experiments/planting`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.live.batch_rows import EVALUATED as ROLE_EVALUATED
from traindx_tools.live.batch_rows import MOST_ROWS, PROBE, BatchRows, path_for, write
from traindx_tools.live.batch_rows import TRAINED as ROLE_TRAINED
from traindx_tools.on_torch.lagged import capturing
from traindx_tools.on_torch.measures.batch import arguments
from traindx_tools.on_torch.measures.calls import EVALUATED, TRAINED, Calls, ModelCall, outputs_of
from traindx_tools.on_torch.measures.row_targets import given_target, row_targets
from traindx_tools.on_torch.measures.row_values import inputs_of, row_matrix
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_variables.column_names import column_names

SECONDS = 120.0
"""After its first call a process has told enough."""
MOST_TARGETS = 4
"""Values of one row's target that are kept: the target of a row that has more is no label."""
LOOKS = 8
"""Trained calls at which the names of the inputs' columns are looked for."""


class _Call(ModelCall):
    """A call with its rows, its outputs and the target that a loss was given with them."""

    matrix: Any = None
    targets: Any = None


class BatchRowsProbe(TorchProbe):
    """Keeps the rows of each call of the model that is trained, until there are enough."""

    name = PROBE
    on_request = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._calls = Calls()
        self._kept: list[tuple[int, int, Any, Any]] = []
        self._current: _Call | None = None
        self._count = self._rows = self._trained = self._per_row = 0
        self._names: tuple[str, ...] = ()
        self._began = 0.0
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
            self._per_row = max(self._per_row, sum(t[0].numel() for t in inputs if len(t)))
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
            call.targets = given_target(args, kwargs, call.rows)

    def before_backward(self, loss: torch.Tensor) -> None:
        """The targets of the rows that are trained on."""
        if self.done:
            return
        with torch.no_grad():
            trained = [c for c in self._calls.trained_by(loss) if isinstance(c, _Call)]
            if len(trained) == 1:
                trained[0].targets = row_targets(loss, trained[0].rows, trained[0].outputs)
                self._trained += trained[0].rows
                if not self._names and self._count <= LOOKS and self._per_row:
                    self._names = column_names(self._per_row, trained[0].rows)
            self._put()
        if self._trained >= self._most or self._rows >= MOST_ROWS or time.monotonic() - self._began > SECONDS:
            self._write(whole=True)

    def _put(self) -> None:
        for call in self._calls.done():
            call.outputs = ()
            if isinstance(call, _Call) and call.matrix is not None and call.role in (TRAINED, EVALUATED):
                self._rows += call.rows
                role = ROLE_TRAINED if call.role == TRAINED else ROLE_EVALUATED
                self._kept.append((call.step, role, call.matrix, call.targets))

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
        width = max((m.shape[1] for _, _, m, _ in self._kept), default=0)
        kept = [k for k in self._kept if k[2].shape[1] == width]  # the inputs of another model are no rows of this one
        if not kept:
            return
        step = np.concatenate([np.full(len(m), s) for s, _, m, _ in kept])
        role = np.concatenate([np.full(len(m), r) for _, r, m, _ in kept])
        place = np.concatenate([np.arange(len(m)) for _, _, m, _ in kept])
        targets = np.concatenate([_columns(t, len(m)) for _, _, m, t in kept])
        rows = BatchRows(step, place, role, np.concatenate([m.numpy() for _, _, m, _ in kept]).astype(np.float32),
                         targets.astype(np.float32), self._per_row, self._names, whole)
        folder: Path = self.scene.recorder.batch_path.parent  # type: ignore[attr-defined]
        write(path_for(folder, self.scene.recorder.rank), rows)
        self._kept.clear()


def _columns(targets: Any, rows: int) -> Any:
    """float32 (rows, MOST_TARGETS), NaN for what there is not."""
    out = np.full((rows, MOST_TARGETS), np.nan, np.float32)
    if targets is not None and targets.shape[1] <= MOST_TARGETS:
        out[:, :targets.shape[1]] = targets.cpu().numpy()
    return out
