"""The comparisons that are asked for most: one model in two modes, dtypes, backends, or with two checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from traindx_tools.on_torch.comparison.compare import Comparison, Run, call, compare
from traindx_tools.on_torch.comparison.tensors import apart

DROPOUTS = (torch.nn.Dropout, torch.nn.Dropout1d, torch.nn.Dropout2d, torch.nn.Dropout3d, torch.nn.AlphaDropout,
            torch.nn.FeatureAlphaDropout)


@contextmanager
def mode(model: torch.nn.Module, training: bool, *, dropout: bool = False) -> Iterator[torch.nn.Module]:
    """The model in training or evaluation mode, each module's own mode given back after; dropout off unless asked."""
    kept = [(m, m.training) for m in model.modules()]
    model.train(training)
    for module in model.modules():
        if not dropout and isinstance(module, DROPOUTS):
            module.training = False
        if not dropout and isinstance(module, torch.nn.RNNBase) and module.dropout:
            module.training = False
    try:
        yield model
    finally:
        for module, was in kept:
            module.training = was


def compare_modes(model: torch.nn.Module, batch: Any, *, run: Run = call, dropout: bool = False,
                  tolerance: float | None = None) -> Comparison:
    """`train()` against `eval()` on one batch, dropout left out: what remains is BatchNorm's statistics and `if
    self.training`. The model is copied; it is left as it was."""
    other = copy.deepcopy(model)
    with mode(model, True, dropout=dropout), mode(other, False, dropout=dropout):
        return compare(model, other, batch, names=("train", "eval"), run=run, tolerance=tolerance)


def compare_dtypes(model: torch.nn.Module, batch: Any, dtype: torch.dtype, *, run: Run = call,
                   tolerance: float | None = None) -> Comparison:
    """The model as it is against a copy in `dtype` (parameters, buffers and floating inputs), in evaluation mode."""
    other = copy.deepcopy(model).to(dtype)

    def cast(side: torch.nn.Module, data: Any) -> Any:
        return run(side, _cast(data, dtype) if side is other else data)

    name = str(next((p.dtype for p in model.parameters()), torch.float32)).removeprefix("torch.")
    with mode(model, False), mode(other, False):
        return compare(model, other, batch, names=(name, str(dtype).removeprefix("torch.")), run=cast,
                       tolerance=tolerance)


def compare_compiled(model: torch.nn.Module, batch: Any, *, backend: str = "inductor", run: Run = call,
                     tolerance: float | None = None) -> Comparison:
    """Each layer eager against itself compiled, on the eager run's inputs, then the whole.

    Leaf layers are compiled one by one, so that the layer is named that the backend gets wrong; a fault that only the
    fusion of several layers makes shows in the output alone, and `between` says so. Evaluation mode.
    """
    other = copy.deepcopy(model)
    whole: Any = torch.compile(copy.deepcopy(model), backend=backend)
    for module in list(other.modules()):
        if not any(True for _ in module.children()):
            module.compile(backend=backend)
    with mode(model, False), mode(other, False), mode(whole, False), torch.no_grad():
        by_layer = compare(model, other, batch, names=("eager", "compiled"), run=run, tolerance=tolerance)
        torch.manual_seed(0)
        eager = run(model, batch)
        torch.manual_seed(0)
        fused = run(whole, batch)
    return replace(by_layer, output=max(by_layer.output, apart(eager, fused)))


def compare_checkpoints(model: torch.nn.Module, first: Mapping[str, torch.Tensor], second: Mapping[str, torch.Tensor],
                        batch: Any, *, run: Run = call, tolerance: float | None = None) -> Comparison:
    """Two state dicts in one architecture, in evaluation mode. Raises ValueError where a state dict does not fit."""
    sides = []
    for state in (first, second):
        side = copy.deepcopy(model)
        try:
            side.load_state_dict(dict(state))
        except RuntimeError as error:
            raise ValueError(f"a checkpoint does not fit the model: {' '.join(str(error).split())[:400]}") from error
        sides.append(side)
    with mode(sides[0], False), mode(sides[1], False):
        return compare(sides[0], sides[1], batch, run=run, tolerance=tolerance)


def _cast(data: Any, dtype: torch.dtype) -> Any:
    if isinstance(data, torch.Tensor):
        return data.to(dtype) if data.is_floating_point() else data
    if isinstance(data, dict):
        return {k: _cast(v, dtype) for k, v in data.items()}
    return type(data)(_cast(v, dtype) for v in data) if type(data) in (tuple, list) else data
