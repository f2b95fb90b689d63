"""The architecture probe: parameter counts when the model is found, and the first loss against ln(classes)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.architecture.analysis import Architecture, analyze_architecture
from traindx_tools.on_torch.comparison.tensors import tensors_in
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t901_embedding_heavy, t902_initial_loss

SOURCE = "architecture probe"
_CROSS_ENTROPY = ("NllLossBackward0", "NllLoss2DBackward0")
MOST_NODES = 200


class ArchitectureProbe(TorchProbe):
    """Counts once; keeps the first loss on its device and reads it a step later."""

    name = "architecture"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._classes = 0
        self._first: torch.Tensor | None = None
        self._output: tuple[int, ...] = ()
        self._done = False
        self._counted: Architecture | None = None
        """The model's counts, until it is known what is trained beside it."""
        self._own: set[int] = set()

    def next_look(self) -> int:
        """Never after the first loss."""
        return self.NEVER if self._done else 0

    def model_found(self, model: torch.nn.Module) -> None:
        seen = analyze_architecture(model)
        self.scene.recorder.metrics(self.scene.step, {"parameters": seen.parameters,
                                                      "parameters_trainable": seen.trainable})
        self._counted, self._own = seen, {id(p) for p in model.parameters()}

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        if not self._done and not self._output:
            first = next(tensors_in(output), None)
            self._output = () if first is None else tuple(first.shape)

    def before_backward(self, loss: torch.Tensor) -> None:
        if self._done or self._first is not None or loss.numel() != 1:
            return
        self._classes = classes_of(loss)
        self._first = loss.detach().clone()

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._weighed(optimizer)
        if self._done or self._first is None or self.scene.step < 2:
            return
        self._done = True
        fresh = not any(self.scene.options.get(k) for k in ("resumed", "pretrained"))
        if self._classes and fresh:
            for finding in t902_initial_loss.check(float(self._first), self._classes, 1, SOURCE,
                                                   self.scene.recorder.rank):
                self.scene.recorder.finding(finding)
        self._first = None

    def _weighed(self, optimizer: torch.optim.Optimizer) -> None:
        """Embeddings as a share of all that is stepped together, at the first step of the model."""
        held = {id(p): p.numel() for g in optimizer.param_groups for p in g["params"]}
        if self._counted is None or not self._own & held.keys():
            return
        beside = sum(n for i, n in held.items() if i not in self._own)
        for finding in t901_embedding_heavy.check(self._counted, SOURCE, beside):
            self.scene.recorder.finding(finding)
        self._counted = None

    def finish(self) -> Iterable[Finding]:
        self._first = self._counted = None
        return ()


def classes_of(loss: torch.Tensor) -> int:
    """Number of classes of the cross entropy that is the loss itself, 0 where it is something else.

    Only where the loss is that cross entropy and no sum of terms: the graph from the loss to the negative log
    likelihood holds nothing but views, casts and multiplications by a constant (a GradScaler, an accumulation).
    """
    node: Any = loss.grad_fn
    for _ in range(MOST_NODES):
        if node is None:
            return 0
        name = type(node).__name__
        if name in _CROSS_ENTROPY:
            return _width(node)
        if not name.startswith(("View", "ToCopy", "MeanBackward", "Alias", "Reshape")):
            return 0
        node = node.next_functions[0][0] if node.next_functions else None
    return 0


def _width(node: Any) -> int:
    """The size of the class axis of what the negative log likelihood was computed from."""
    saved = getattr(node, "_saved_self", None)
    if not isinstance(saved, torch.Tensor) or saved.dim() < 1:
        return 0
    return int(saved.shape[1] if saved.dim() > 1 else saved.shape[0])
