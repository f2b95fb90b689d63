"""What the variables hold while a program trains: stored entries that change, digits that are lost (V101 to V107)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_variables.watch import VariablesWatch


class VariablesProbe(TorchProbe):
    """Looks at steps 4, 8, 16, ..."""

    name = "variables"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._watch = VariablesWatch(scene.recorder.mark)

    def next_look(self) -> int:
        """The step before the next look."""
        return self._watch.next - 1

    def converted(self, before: Any, after: Any, place: tuple[str, int] | None) -> None:
        """Looks at what is left."""
        self._watch.conversions.look(before, after, place)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Looks, where it is time."""
        self._watch.stepped(self.scene.step)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from self._watch.findings(self.scene.recorder.rank)
