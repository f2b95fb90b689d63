"""What becomes of a few weights' gradients between backward passes and steps (T207, T208)."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.parameters import local
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t207_gradients_discarded, t208_gradients_carried
from traindx_tools.on_torch.rules.t207_gradients_discarded import Windows

VALUES, WEIGHTS = 64, 3
WATCHED = 60
"""Steps that are watched from the beginning; after them nothing is looked at any more."""
FIRST, EVERY = 12, 4
"""The first steps are all looked at, of later ones each fourth: what is lost or kept is so in every one."""


class AccumulationProbe(TorchProbe):
    """Gradients that are thrown away within a window, or never set back. Watches three weights for sixty steps."""

    name = "accumulation"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._weights: list[torch.nn.Parameter] = []
        self._late: Late[str] = Late()
        self._windows = self._several = self._discarded = self._passes = 0
        self._ended = self._in_window = 0
        self._filled: torch.Tensor | None = None
        """The watched gradients after the last backward pass of this window."""
        self._taken: torch.Tensor | None = None
        """The watched gradients when the last step was taken."""
        self._lost = False
        self._steps: dict[str, tuple[int, int]] = {}
        """The first and the last step of each kind of window: "looked", "lost", "carried"."""
        self._version = -1
        self._counts = {"carried": 0, "judged": 0}

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Chooses the first, the middle and the last weight of two or more dimensions that has a gradient."""
        if not self._weights:
            able = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad and p.numel()
                    and p.ndim >= 2 and p.grad is not None and not p.grad.is_sparse]
            self._weights = list({id(p): p for p in (able[:1] + able[len(able) // 2:][:1] + able[-1:])}.values())

    def before_backward(self, loss: torch.Tensor) -> None:
        """Whether what was there is still there."""
        weights = self._watched()
        if not weights:
            return
        with torch.no_grad():
            if self._in_window == 0 and self._taken is not None and _looked_at(self._ended):
                self._late.send("carried", self._with_step(_same(_sample(weights), self._taken)))
            elif self._in_window > 0 and self._filled is not None and _versions(weights) == self._version:
                self._late.send("lost", _emptied(_sample(weights), self._filled))

    def after_backward(self, loss: torch.Tensor) -> None:
        """What this pass left."""
        weights = self._watched()
        if weights:
            self._in_window += 1
            if _looked_at(self._ended):
                self._version = _versions(weights)
                self._filled = _sample(weights)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """What the step takes."""
        weights = self._watched()
        if weights and self._in_window:
            self._taken = _sample(weights) if _looked_at(self._ended + 1) else None
            if _looked_at(self._ended):
                self._late.send("end", self._with_step(torch.full((1,), float(self._in_window))))
            self._in_window, self._filled = 0, None
            self._ended += 1

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived; judges once, when the watch is over."""
        if not self.done:
            self._read()
            if self._ended >= WATCHED:
                self.done = True
                for finding in self._findings():
                    self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        yield from self._findings()

    def _watched(self) -> list[torch.nn.Parameter]:
        alone = len(self.scene.optimizers) == 1 and self._ended < WATCHED
        return self._weights if alone else []

    def _read(self, *, wait: bool = False) -> None:
        for kind, values in self._late.arrived(wait=wait):
            value = float(values[0])
            if kind == "lost":
                self._lost = self._lost or value > 0
            elif kind == "carried":
                self._counts["judged"] += 1
                self._counts["carried"] += value > 0
                self._note("carried", values[1], value > 0)
            else:
                self._windows += 1
                self._passes += int(value) if value > 1 else 0
                self._several += value > 1
                self._discarded += value > 1 and self._lost
                self._note("looked", values[1], True)
                self._note("lost", values[1], value > 1 and self._lost)
                self._lost = False

    def _with_step(self, value: torch.Tensor) -> torch.Tensor:
        """The value and the number of the step under way, counted from 1: float32 of shape (2,), exact to 2^24."""
        step = torch.full((1,), float(self.scene.step + 1), device=value.device)
        return torch.cat([value.to(torch.float32), step])

    def _note(self, kind: str, step: float, holds: bool) -> None:
        if holds:
            self._steps[kind] = (self._steps.get(kind, (int(step), 0))[0], int(step))

    def _findings(self) -> Iterable[Finding]:
        if not self._weights or len(self.scene.optimizers) != 1:
            return
        first, last = self._steps.get("looked", (1, max(1, self._ended)))
        seen = Windows(self._windows, self._several, self._discarded, self._passes / max(1, self._several),
                       self._counts["carried"], self._counts["judged"],
                       self.scene.parameter_paths.get(id(self._weights[0]), "a weight"), first, last,
                       self.scene.recorder.rank, self._steps.get("lost"), self._steps.get("carried"))
        yield from t207_gradients_discarded.check(seen)
        yield from t208_gradients_carried.check(seen)


def _looked_at(window: int) -> bool:
    return window < FIRST or window % EVERY == 0


def _versions(weights: list[torch.nn.Parameter]) -> int:
    """Changes whenever something writes the weights."""
    return sum(w._version for w in weights)


def _sample(weights: list[torch.nn.Parameter]) -> torch.Tensor:
    """At most 64 values of each weight's gradient, one row a weight; zeros where there is none."""
    rows: list[torch.Tensor] = []
    for w in weights:
        part = torch.zeros(0)
        if w.grad is not None and not w.grad.is_sparse:
            flat = local(w.grad).reshape(-1)
            part = flat[:: max(1, flat.numel() // VALUES)][:VALUES]
        row = part
        if len(part) < VALUES or part.dtype != torch.float32:
            row = torch.zeros(VALUES, device=local(w).device)
            row[: len(part)] = part
        rows.append(row.to(rows[0].device) if rows else row)
    return torch.stack(rows)


def _same(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Whether some gradient that is not zero is still what it was; as (1,)."""
    return ((now == before).all(1) & (before != 0).any(1)).any().reshape(1)


def _emptied(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Whether some gradient that was not zero is zero, or gone; as (1,)."""
    return ((now == 0).all(1) & (before != 0).any(1)).any().reshape(1)
