"""Always on: do the weights of the classes fit how often each class is trained on (T729)?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.losses import bound
from traindx_tools.on_torch.rules import t729_class_weights
from traindx_tools.on_torch.rules.t729_class_weights import Weighted
from traindx_tools.rows.class_weights import misfit

MOST_LOSSES, MOST_CLASSES, MOST_CALLS = 8, 4096, 4000
_BY_CLASS, _BY_ODDS = frozenset({"cross_entropy", "nll_loss"}), "binary_cross_entropy_with_logits"


@dataclass(eq=False)
class _Loss:
    """One loss with one set of weights. `counts`: rows of each class; for odds, of those that have it."""

    name: str
    argument: str
    weights: NDArray[np.float64] | None
    counts: NDArray[np.float64]
    file: str | None
    line: int | None
    rows: int = 0
    calls: int = 0


class ClassWeightsProbe(TorchProbe):
    """Counts labels where a loss is given weights, while gradients are on."""

    name = "class-weights"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._losses: dict[tuple[str, int, int | None], _Loss] = {}
        self._late: Late[tuple[_Loss, str]] = Late()

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Counts, where there are weights."""
        if not torch.is_grad_enabled() or (name not in _BY_CLASS and name != _BY_ODDS):
            return
        given = bound(name, args, kwargs)
        argument = "pos_weight" if name == _BY_ODDS else "weight"
        weights, target = given.get(argument), given.get("target")
        if not isinstance(weights, torch.Tensor) or type(target) is not torch.Tensor or weights.requires_grad:
            return
        if not 2 < weights.numel() <= MOST_CLASSES or not target.numel():
            return
        counted = _of_classes(given, weights, target) if name in _BY_CLASS else _of_odds(weights, target)
        if counted is None or (counted.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        loss = self._loss(name, argument, weights)
        if loss is not None and loss.calls < MOST_CALLS:
            loss.calls += 1
            loss.rows += target.numel() if name in _BY_CLASS else target.numel() // weights.numel()
            self._late.send((loss, "counts"), counted)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read()

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        for loss in self._losses.values():
            for seen in _judged(loss):
                yield from t729_class_weights.check(seen, self.scene.step, self.scene.recorder.rank)

    def _loss(self, name: str, argument: str, weights: torch.Tensor) -> _Loss | None:
        place = here()
        file, line = (place.file, place.line) if place is not None else (None, None)
        key = (f"{name} {file}", weights.numel(), line)
        if key not in self._losses:
            if len(self._losses) >= MOST_LOSSES:
                return None
            self._losses[key] = loss = _Loss(name, argument, None, np.zeros(weights.numel()), file, line)
            self._late.send((loss, "weights"), weights.detach().reshape(-1).double())
        return self._losses[key]

    def _read(self, *, wait: bool = False) -> None:
        for (loss, what), values in self._late.arrived(wait=wait):
            if what == "weights":
                loss.weights = values
            else:
                loss.counts += values


def _of_classes(given: Mapping[str, Any], weights: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    if target.is_floating_point() or target.dtype == torch.bool:
        return None  # soft labels
    flat, count = target.detach().reshape(-1), weights.numel()
    known = (flat >= 0) & (flat < count) & (flat != given.get("ignore_index", -100))
    return torch.zeros(count, dtype=torch.float64, device=flat.device).index_add_(
        0, flat.clamp(0, count - 1).long(), known.double())


def _of_odds(weights: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    if not target.ndim or target.shape[-1] != weights.numel():
        return None
    return target.detach().reshape(-1, weights.numel()).double().sum(0)


def _judged(loss: _Loss) -> Iterator[Weighted]:
    if loss.weights is None or not loss.rows:
        return
    if loss.name in _BY_CLASS:
        found = misfit(loss.weights, loss.counts)
    else:
        without = np.maximum(loss.rows - loss.counts, 0)
        odds = np.divide(loss.counts, without, out=np.zeros_like(without), where=without > 0)
        found = misfit(loss.weights, odds, np.minimum(loss.counts, without))
    if found is not None:
        yield Weighted(loss.name, loss.argument, loss.rows, found, loss.file, loss.line)
