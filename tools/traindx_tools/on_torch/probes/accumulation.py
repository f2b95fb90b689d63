"""What becomes of one weight's gradient between backward passes and steps (T207, T208)."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.parameters import local
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t207_gradients_discarded, t208_gradients_carried
from traindx_tools.on_torch.rules.t207_gradients_discarded import Windows

VALUES = 64
WATCHED = 60
"""Steps that are watched from the beginning; after them nothing is looked at any more."""


class AccumulationProbe(TorchProbe):
    """Gradients that are thrown away within a window, or never set back. Watches one weight for sixty steps."""

    name = "accumulation"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._weight: torch.nn.Parameter | None = None
        self._late: Late[str] = Late()
        self._windows = self._several = self._discarded = self._passes = 0
        self._in_window = 0
        self._filled: torch.Tensor | None = None
        """The watched gradient after the last backward pass of this window."""
        self._taken: torch.Tensor | None = None
        """The watched gradient when the last step was taken."""
        self._lost = False
        self._version = -1
        self._counts = {"carried": 0, "judged": 0}
        self._window_lost: list[bool] = []

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Chooses the last weight of two or more dimensions that has a gradient."""
        if self._weight is None:
            held = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad and p.numel()]
            self._weight = next((p for p in reversed(held) if p.ndim >= 2 and p.grad is not None
                                 and not p.grad.is_sparse), None)

    def before_backward(self, loss: torch.Tensor) -> None:
        """Whether what was there is still there."""
        weight = self._watched()
        if weight is None:
            return
        now = _sample(weight.grad)
        with torch.no_grad():
            if self._in_window == 0 and self._taken is not None:
                carried = torch.zeros(1) if now is None else _same(now, self._taken)
                self._late.send("carried", carried)
            elif self._in_window > 0 and self._filled is not None and weight._version == self._version:
                lost = torch.ones(1) if now is None else _emptied(now, self._filled)
                self._late.send("lost", lost)

    def after_backward(self, loss: torch.Tensor) -> None:
        """What this pass left."""
        weight = self._watched()
        if weight is not None:
            self._in_window += 1
            self._version = weight._version
            self._filled = _sample(weight.grad)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """What the step takes."""
        weight = self._watched()
        if weight is not None and self._in_window:
            self._taken = _sample(weight.grad)
            self._late.send("end", torch.full((1,), float(self._in_window)))
            self._in_window, self._filled = 0, None

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived; judges once, when the watch is over."""
        if self._windows < WATCHED:
            self._read()
            if self._windows >= WATCHED:
                for finding in self._findings():
                    self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        yield from self._findings()

    def _watched(self) -> torch.nn.Parameter | None:
        alone = len(self.scene.optimizers) == 1 and self._windows < WATCHED
        return self._weight if alone else None

    def _read(self, *, wait: bool = False) -> None:
        for kind, values in self._late.arrived(wait=wait):
            value = float(values[0])
            if kind == "lost":
                self._lost = self._lost or value > 0
            elif kind == "carried":
                self._counts["judged"] += 1
                self._counts["carried"] += value > 0
            else:
                self._windows += 1
                self._passes += int(value) if value > 1 else 0
                self._several += value > 1
                self._discarded += value > 1 and self._lost
                self._lost = False

    def _findings(self) -> Iterable[Finding]:
        if self._weight is None or len(self.scene.optimizers) != 1:
            return
        seen = Windows(self._windows, self._several, self._discarded, self._passes / max(1, self._several),
                       self._counts["carried"], self._counts["judged"],
                       self.scene.parameter_paths.get(id(self._weight), "a weight"), 1, max(1, self._windows),
                       self.scene.recorder.rank)
        yield from t207_gradients_discarded.check(seen)
        yield from t208_gradients_carried.check(seen)


def _sample(grad: torch.Tensor | None) -> torch.Tensor | None:
    if grad is None or grad.is_sparse:
        return None
    part = local(grad).reshape(-1)
    return part[:: max(1, part.numel() // VALUES)][:VALUES].clone()


def _same(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Whether a gradient that is not zero is still what it was; as (1,)."""
    if now.shape != before.shape:
        return torch.zeros(1)
    return ((now == before).all() & (before != 0).any()).reshape(1)


def _emptied(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Whether a gradient that was not zero is zero now; as (1,)."""
    return ((now == 0).all() & (before != 0).any()).reshape(1)
