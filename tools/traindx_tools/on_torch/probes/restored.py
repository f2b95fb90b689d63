"""Always on: whether what took the state of a checkpoint is what trains afterwards (T327)."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import TorchProbe
from traindx_tools.on_torch.rules import t327_restored_and_replaced
from traindx_tools.on_torch.rules.state import At
from traindx_tools.on_torch.rules.t327_restored_and_replaced import STEPS, Replaced

MOST_LOADS = 16


@dataclass(eq=False)
class _Load:
    """An object that took a state. `of`: the first parameter, or the optimizer, that it is for."""

    what: str
    name: str
    owner: weakref.ref[Any]
    of: weakref.ref[Any]
    at: At
    held: int
    how: str = ""
    used: bool = False
    steps: int = 0
    other: str = ""


class RestoredProbe(TorchProbe):
    """Follows each loaded optimizer and schedule to its first step."""

    name = "restored"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._loads: list[_Load] = []

    def next_look(self) -> int:
        """Never where everything that was loaded is known to be used."""
        return 0 if any(not load.used and load.steps <= STEPS for load in self._loads) else self.NEVER

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """Something took a state."""
        if kind not in ("optimizer", "scheduler") or len(self._loads) >= MOST_LOADS:
            return
        held = len(owner.state) if kind == "optimizer" else getattr(owner, "last_epoch", 0)
        of = _first(owner) if kind == "optimizer" else getattr(owner, "optimizer", None)
        if not isinstance(held, int) or held < (1 if kind == "optimizer" else 2) or of is None:
            return
        place = here()
        self._loads.append(_Load(kind, type(owner).__name__, weakref.ref(owner), weakref.ref(of), At(
            place.file if place else None, place.line if place else None, self.scene.step, self.scene.recorder.rank),
            held))

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Which optimizer steps, and whether it holds its state."""
        for load in self._loads:
            if load.what != "optimizer" or load.used:
                continue
            if load.owner() is optimizer:
                load.used = True
                if not load.steps and not optimizer.state:
                    load.how, load.steps = "emptied", STEPS
            elif load.of() is not None and load.name == type(optimizer).__name__ and any(
                    p is load.of() for group in optimizer.param_groups for p in group["params"]):
                self._replaced(load, optimizer)

    def scheduled(self, scheduler: Any) -> None:
        """Which schedule steps, and from where."""
        position = getattr(scheduler, "last_epoch", 0)
        for load in self._loads:
            if load.what != "scheduler" or load.used or not isinstance(position, int) or position < 1:
                continue
            if load.owner() is scheduler:
                load.used = True
                if position == 1 and load.held > 1:
                    load.how, load.steps = "reset", STEPS
            elif load.of() is not None and load.name == type(scheduler).__name__ and (
                    getattr(scheduler, "optimizer", None) is load.of()):
                self._replaced(load, scheduler)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from t327_restored_and_replaced.check([
            Replaced(load.what, load.how, load.name, load.at, load.steps, load.held, load.other)
            for load in self._loads if load.how and (load.how != "replaced" or not load.used)])

    def _replaced(self, load: _Load, other: Any) -> None:
        load.how, load.other = "replaced", type(other).__name__
        load.steps += 1


def _first(optimizer: torch.optim.Optimizer) -> torch.Tensor | None:
    return next((p for group in optimizer.param_groups for p in group["params"]), None)
