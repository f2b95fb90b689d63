"""Always on: is a state carried from batch to batch while the loader draws its rows at random (T730)?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.captured.call import names_of
from traindx_tools.on_torch.nonfinite.sources import storage_key
from traindx_tools.on_torch.probe import TorchProbe
from traindx_tools.on_torch.probes.row_order import loader_of
from traindx_tools.on_torch.rules import t730_row_order
from traindx_tools.on_torch.rules.t730_row_order import Carried
from traindx_tools.on_torch.snapshot.tape import tensors_of

LOOKS = range(1, 9)
MOST_VALUES = 2**20


class CarriedStateProbe(TorchProbe):
    """Compares what a model is given with what it gave in the step before, in the first steps."""

    name = "carried-state"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._gave: tuple[int, int, list[torch.Tensor]] | None = None
        """The model's id, the step and the tensors that it gave, without their graphs."""
        self._seen: dict[tuple[int, str], list[int]] = {}
        """By model and argument: rows of the batch, once for each step."""
        self._models: dict[int, str] = {}
        self._loader = ""

    def next_look(self) -> int:
        """Nothing after the first steps."""
        return 0 if self.scene.step < LOOKS[-1] else self.NEVER

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Is something of the last step among the arguments?"""
        gave, draw = self._gave, self.scene.draw
        if gave is None or gave[0] != id(model) or gave[1] != self.scene.step - 1 or not torch.is_grad_enabled():
            return
        if draw is None or not draw.by_chance or len(self.scene.optimizers) != 1 or not model.training:
            return
        rows = len(draw.index)
        names = names_of(model)
        given = {**{names[i] if i < len(names) else str(i): a for i, a in enumerate(args)}, **kwargs}
        for name, value in given.items():
            if any(rows in t.shape and _same(t, old) for t in tensors_of(value) for old in gave[2]):
                told = self._seen.setdefault((id(model), name), [])
                told.append(rows)
                self._models[id(model)] = self.scene.module_paths.get(id(model)) or type(model).__name__
                self._loader = loader_of(draw)
        self._gave = None

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """Keeps what it gave."""
        if self.scene.step not in range(LOOKS[-1]) or not torch.is_grad_enabled() or not model.training:
            return
        made = [t.detach() for t in tensors_of(output) if t.is_floating_point() and t.numel() <= MOST_VALUES]
        self._gave = (id(model), self.scene.step, made)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What was seen may be why."""
        return list(self._findings())

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._gave = None
        return list(self._findings())

    def _findings(self) -> Iterator[Finding]:
        for (model, argument), rows in self._seen.items():
            carried = Carried(self._models[model], argument, rows[-1], len(rows))
            yield from t730_row_order.check_carried(carried, self._loader, self.scene.step, self.scene.recorder.rank)


def _same(given: torch.Tensor, old: torch.Tensor) -> bool:
    """Whether a tensor is one that the model gave: the same memory, or on the CPU the same values, not all alike."""
    if given.shape != old.shape or given.dtype != old.dtype or given.numel() < 2:
        return False
    if storage_key(given) == storage_key(old):
        return True
    if given.device.type != "cpu" or old.device.type != "cpu":
        return False
    return torch.equal(given.detach(), old) and bool((old != old.flatten()[0]).any())
