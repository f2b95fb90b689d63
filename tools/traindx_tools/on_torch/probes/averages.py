"""Always on: averages and sums of the loop whose increments are rounded away (T349)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.rounded_away import Mixed, RoundedAway, each
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t349_increments_rounded_away
from traindx_tools.on_torch.rules.t349_increments_rounded_away import Stuck
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile

LOOKED_AT = (14, 60, 200, 700, 2500, 9000)
"""Steps after which the loop is looked at: not those that other instruments note."""
LONG = 4
"""Steps of one look: what is summed up in one is added to in the next."""
MOST_LINES = 64


class AveragesProbe(TorchProbe):
    """Looks at the operations of some steps, outside of models, backward passes and optimizers."""

    name = "averages"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._mode = RoundedAway()
        watch_compile(self._mode.close)
        self._began = self._until = 0
        self._thread = 0
        self._seen: dict[tuple[str, str, str], Stuck] = {}

    @property
    def _looking(self) -> bool:
        return self.scene.step < self._until

    def next_look(self) -> int:
        """The step before the next look."""
        if self._looking:
            return 0
        return next((k - 1 for k in LOOKED_AT if k > self.scene.step), self.NEVER)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Begins a look, or goes on, or ends it."""
        self._read(wait=False)
        if self.scene.step in LOOKED_AT and not self._looking and not compiles() and not self.scene.sharded:
            self._began, self._until = self.scene.step, self.scene.step + LONG
            self._thread = threading.get_ident()
            self._mode.clear()
        if self._looking:
            self._mode.open()
        else:
            self._mode.close()

    def before_batch(self) -> None:
        """What a DataLoader does is none of it."""
        self._mode.close()

    def batch_given(self, batch: Any) -> None:
        """The loop goes on."""
        self._again()

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What a model does is none of it."""
        self._mode.close()

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """The loop goes on."""
        self._again()

    def before_backward(self, loss: torch.Tensor) -> None:
        """Nor is the backward pass."""
        self._mode.close()

    def after_backward(self, loss: torch.Tensor) -> None:
        """The loop goes on."""
        self._again()

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Nor what an optimizer does."""
        self._mode.close()

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """Takes the mode off."""
        self._mode.close()
        return ()

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._mode.close()
        self._read(wait=True)
        yield from t349_increments_rounded_away.check(list(self._seen.values()), self.scene.recorder.rank)

    def let_go(self) -> None:
        """Takes the mode off."""
        self._until = 0
        self._mode.close()

    def _again(self) -> None:
        if self._looking and threading.get_ident() == self._thread:
            self._mode.open()

    def _read(self, *, wait: bool) -> None:
        for mixed, must, still, _ in each(self._mode.late, wait=wait):
            if must:
                self._stuck(mixed).take(must, still, self._began)

    def _stuck(self, mixed: Mixed) -> Stuck:
        place = mixed.place
        file, line = (place.file, place.line) if place is not None else (None, None)
        if len(self._seen) >= MOST_LINES:
            return Stuck(mixed.kind, mixed.dtype, mixed.weight)
        return self._seen.setdefault((mixed.kind, mixed.dtype, f"{file}:{line}"),
                                     Stuck(mixed.kind, mixed.dtype, mixed.weight, file, line))
