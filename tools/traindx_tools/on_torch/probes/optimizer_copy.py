"""Save, load, step against step: asks copies of optimizers that are not torch's own (T342)."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.saved_optimizer import Lost, extra_of, saved_optimizer
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t342_optimizer_not_saved
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile
from traindx_tools.on_torch.world import world_size

ASKED_AT = 3
"""Steps of an optimizer that are complete when it is asked, once."""


class OptimizerCopyProbe(TorchProbe):
    """What a step after loading lacks. Nothing is asked of torch's own optimizers, and of none among many processes."""

    name = "optimizer-copy"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        watch_compile()
        self._initial: dict[int, tuple[weakref.ref[torch.optim.Optimizer], dict[str, Any]]] = {}
        self._steps: dict[int, int] = {}
        self._answers: list[tuple[str, Lost | None, int]] = []
        self._saved = False
        self.not_asked = ""

    def next_look(self) -> int:
        """Nothing once all were asked."""
        return 0 if self._initial else self.NEVER

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """What its constructor made, before its first step."""
        if type(optimizer).__module__.startswith("torch."):
            return
        try:
            self._initial[id(optimizer)] = weakref.ref(optimizer), extra_of(optimizer)
        except NotKept as why:
            self.not_asked = str(why)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Asks, with the gradients that the step is about to take."""
        held = self._initial.get(id(optimizer))
        if held is None or held[0]() is not optimizer:
            return
        count = self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        if count <= ASKED_AT:
            return
        del self._initial[id(optimizer)]
        if compiles() or world_size() > 1 or any(hasattr(p, "to_local") for g in optimizer.param_groups
                                             for p in g["params"]):
            return
        name = type(optimizer).__name__
        try:
            self._answers.append((name, saved_optimizer(optimizer, held[1]), self.scene.step))
        except NotKept as why:
            self.not_asked = str(why)
            self.scene.program.remarks.append(f"saving and loading {name} was not tried on a copy: {why}")

    def file_written(self, path: Any, value: Any) -> None:
        """Somebody saves."""
        self._saved = True

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for name, lost, step in self._answers:
            yield from t342_optimizer_not_saved.check(name, lost, self._saved, step, self.scene.recorder.rank)
