"""Checks before a long run: do samples depend on their neighbours, can it overfit, does it repeat?"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.comparison.compare import Comparison, call, compare
from traindx_tools.on_torch.comparison.pairs import mode
from traindx_tools.on_torch.comparison.tensors import tensors_in
from traindx_tools.on_torch.rules import t903_batch_leak

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]


def check_batch_independence(model: torch.nn.Module, batch: Any, *, training: bool = False, sample: int = 0,
                             source: str = "batch independence") -> tuple[Finding, ...]:
    """T903 where one sample's output depends on another sample's input.

    `batch`: a tensor (samples first), a tuple or a dict with at least one floating tensor of at least two samples. The
    gradient of one sample's output with respect to the whole input must be zero outside that sample. In evaluation
    mode by default: BatchNorm in training mode depends on the batch by design (`training=True` shows it). Models whose
    input is integer ids are checked by exchanging the other samples instead. Raises ValueError for a batch of one.
    """
    inputs = [t for t in _tensors(batch) if t.dim() and t.shape[0] > sample]
    if not inputs or inputs[0].shape[0] < 2:
        raise ValueError("expected a batch of at least two samples along the first axis of its first tensor")
    side = copy.deepcopy(model)
    with mode(side, training), torch.random.fork_rng(devices=[]):
        floating = [t for t in inputs if t.is_floating_point()]
        others = _by_gradient(side, batch, sample) if floating else _by_exchange(side, batch, sample)
    return tuple(t903_batch_leak.check(others, inputs[0].shape[0], sample, source))


def _tensors(batch: Any) -> list[torch.Tensor]:
    values = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (tuple, list)) else (batch,)
    return [v for v in values if isinstance(v, torch.Tensor)]


def _mapped(batch: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(batch, torch.Tensor):
        return change(batch)
    if isinstance(batch, dict):
        return {k: change(v) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}
    return type(batch)(change(v) if isinstance(v, torch.Tensor) else v for v in batch)


def _by_gradient(model: torch.nn.Module, batch: Any, sample: int) -> dict[int, float]:
    watched: list[torch.Tensor] = []

    def watch(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        watched.append(tensor.detach().clone().requires_grad_())
        return watched[-1]

    changed = _mapped(batch, watch)
    with torch.enable_grad():
        output: Any = next(tensors_in(call(model, changed)))
        output[sample].sum().backward()
    return _others([w.grad for w in watched if w.grad is not None], sample)


def _others(gradients: list[torch.Tensor], sample: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for gradient in gradients:
        by_sample = gradient.detach().abs().reshape(gradient.shape[0], -1).amax(1).cpu()
        for i in by_sample.nonzero().flatten().tolist():
            if i != sample:
                found[i] = max(found.get(i, 0.0), float(by_sample[i]))
    return found


def _by_exchange(model: torch.nn.Module, batch: Any, sample: int) -> dict[int, float]:
    """Rolls every other sample by one place: the sample's own output must stay."""
    def exchanged(tensor: torch.Tensor) -> torch.Tensor:
        rest = [i for i in range(tensor.shape[0]) if i != sample]
        order = torch.arange(tensor.shape[0], device=tensor.device)
        order[rest] = torch.tensor([rest[0], *([rest[0]] * (len(rest) - 1))], device=tensor.device)
        return tensor[order]

    with torch.no_grad():
        before = next(tensors_in(call(model, batch)))[sample]
        after = next(tensors_in(call(model, _mapped(batch, exchanged))))[sample]
    gap = float((before - after).abs().max())
    return {} if gap <= 1e-5 * max(1.0, float(before.abs().max())) else {-1: gap}


@dataclass(frozen=True)
class Overfit:
    """One batch, many steps: the loss at the first and at the last step, and whether it fell as far as it should."""

    first: float
    last: float
    steps: int
    target: float

    @property
    def passed(self) -> bool:
        """Whether the last loss is finite and at or below the target."""
        return math.isfinite(self.last) and self.last <= self.target


def overfit_one_batch(model: torch.nn.Module, loss: Loss, batch: Any, *, steps: int = 300, learning_rate: float = 3e-3,
                      target: float | None = None, seed: int = 0) -> Overfit:
    """Trains a copy of the model on one batch: a model, a loss and labels that fit together get it nearly right.

    `loss(model, batch)` returns a scalar. `target`: by default a tenth of the first loss. Dropout is off. A failure
    says that the fault is in model, loss or labels and not in data volume, schedule or regularisation. The model given
    in is not changed.
    """
    side = copy.deepcopy(model)
    values: list[float] = []
    with mode(side, True), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        optimizer = torch.optim.Adam([p for p in side.parameters() if p.requires_grad], learning_rate)
        for _ in range(steps):
            optimizer.zero_grad()
            value: Any = loss(side, batch)
            value.backward()
            optimizer.step()
            values.append(float(value.detach()))
            if not math.isfinite(values[-1]):
                break
    return Overfit(values[0], values[-1], len(values), values[0] / 10 if target is None else target)


@dataclass(frozen=True)
class Difference:
    """Two runs with one seed: None where they agree, else the first step whose loss differs, and the first layer."""

    step: int | None
    first: float = 0.0
    second: float = 0.0
    layer: str | None = None

    @property
    def same(self) -> bool:
        """Whether all steps gave bitwise equal losses."""
        return self.step is None


def check_determinism(make: Callable[[], tuple[torch.nn.Module, torch.optim.Optimizer]], loss: Loss, batches: list[Any],
                      *, seed: int = 0) -> Difference:
    """Trains twice from one seed and names the first step, and the first layer, whose values differ.

    `make()` builds model and optimizer; `loss(model, batch)` returns a scalar. NumPy's and Python's generators are
    seeded too. A layer is named where the models agree before that step and one layer's output does not.
    """
    runs = [_trained(make, loss, batches, seed) for _ in range(2)]
    for step, (a, b) in enumerate(zip(*runs, strict=True)):
        if a.value != b.value and not (math.isnan(a.value) and math.isnan(b.value)):
            seen: Comparison = compare(a.model, b.model, batches[step], run=loss, tolerance=1e-12)
            return Difference(step, a.value, b.value, seen.first.path if seen.first else None)
    return Difference(None)


@dataclass(frozen=True)
class _Step:
    value: float
    model: torch.nn.Module


def _trained(make: Callable[[], tuple[torch.nn.Module, torch.optim.Optimizer]], loss: Loss, batches: list[Any],
             seed: int) -> list[_Step]:
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    model, optimizer = make()
    steps = []
    for batch in batches:
        before = copy.deepcopy(model)
        optimizer.zero_grad()
        value: Any = loss(model, batch)
        value.backward()
        optimizer.step()
        steps.append(_Step(float(value.detach()), before))
    return steps
